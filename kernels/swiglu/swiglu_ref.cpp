#include <cmath>

#include "kernels/swiglu/swiglu.hpp"

namespace quantmap {

void swiglu_ref(const float* gate, std::int64_t gate_stride, const float* up, std::int64_t up_stride,
                std::int64_t rows, std::int64_t cols, float* out, std::int64_t out_stride) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) {
      const double g = gate[r * gate_stride + c];
      out[r * out_stride + c] = static_cast<float>(g / (1.0 + std::exp(-g)) * up[r * up_stride + c]);
    }
}

}  // namespace quantmap
