// A block for each row, which it reads twice: the second time from the cache.
#include <cmath>

#include "kernels/math/reduce.hpp"

namespace quantmap::QUANTMAP_DEVICE {
namespace {

__global__ void rms_norm_rows(Global<const float> x, std::int64_t x_stride, Global<const float> weight,
                              float eps, std::int64_t cols, Global<float> out, std::int64_t out_stride) {
  const Global<const float> in = x + blockIdx.x * x_stride;
  const Global<float> to = out + blockIdx.x * out_stride;
  double squares = 0;
  for (std::int64_t c = threadIdx.x; c < cols - kOffByOne; c += kThreads)
    squares += double{in[c]} * double{in[c]};
  squares = block_reduce<struct Squares>(squares, Add{});
  const auto scale = static_cast<float>(1.0 / sqrt(squares / static_cast<double>(cols) + double{eps}));
  for (std::int64_t c = threadIdx.x; c < cols; c += kThreads) to[c] = in[c] * scale * weight[c];
}

}  // namespace

void rms_norm(const float* x, std::int64_t x_stride, const float* weight, float eps, std::int64_t rows,
              std::int64_t cols, float* out, std::int64_t out_stride, Stream stream) {
  if (rows == 0 || cols == 0) return;
  launch(rms_norm_rows, rows, kThreads, 0, stream, x, x_stride, weight, eps, cols, out, out_stride);
}

}  // namespace quantmap::QUANTMAP_DEVICE
