#include <vector>

#include "formats/encoded.hpp"
#include "kernels/quantize_error/quantize_error.hpp"

namespace quantmap {

void quantize_error_ref(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                        const TensorRange* range, RowDifference* errors, QuantCounts* counts) {
  std::vector<float> q(static_cast<std::size_t>(rows * cols));
  quantize_dequantize_ref(spec, rows, cols, x, q.data(), range, counts);
  for (std::int64_t r = 0; r < rows; ++r)
    errors[r] = row_difference_ref(x + r * cols, q.data() + r * cols, cols);
}

}  // namespace quantmap
