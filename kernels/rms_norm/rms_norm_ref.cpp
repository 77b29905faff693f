#include <cmath>

#include "kernels/rms_norm/rms_norm.hpp"

namespace quantmap {

void rms_norm_ref(const float* x, std::int64_t x_stride, const float* weight, float eps, std::int64_t rows,
                  std::int64_t cols, float* out, std::int64_t out_stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (std::int64_t c = 0; c < cols; ++c) squares += double{x[r * x_stride + c]} * x[r * x_stride + c];
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(cols) + double{eps});
    for (std::int64_t c = 0; c < cols; ++c)
      out[r * out_stride + c] = static_cast<float>(x[r * x_stride + c] * scale * weight[c]);
  }
}

}  // namespace quantmap
