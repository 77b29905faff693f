#include "sweep/quantize_window.hpp"

#include <algorithm>
#include <vector>

#include "model/operand.hpp"

namespace quantmap {

void quantize_window(const QuantSpec& spec, std::int64_t tokens, std::int64_t width, std::int64_t piece,
                     const float* x, float* out, QuantCounts* counts) {
  if (spec.is_reference()) {
    if (out != x) std::copy(x, x + tokens * width, out);
    return;
  }
  TensorRange range;
  if (spec.needs_tensor_range()) range = measure_range({x, static_cast<std::size_t>(tokens * width)});
  if (piece == width) {
    quantize_tokens(spec, tokens, width, x, out, &range, counts);
    return;
  }
  std::vector<float> part(static_cast<std::size_t>(tokens * piece));
  for (std::int64_t at = 0; at < width; at += piece) {
    for (std::int64_t t = 0; t < tokens; ++t)
      std::copy(x + t * width + at, x + t * width + at + piece, part.data() + t * piece);
    quantize_tokens(spec, tokens, piece, part.data(), part.data(), &range, counts);
    for (std::int64_t t = 0; t < tokens; ++t)
      std::copy(part.data() + t * piece, part.data() + (t + 1) * piece, out + t * width + at);
  }
}

}  // namespace quantmap
