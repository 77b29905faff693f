// A block for each row, which it reads once.
#include "kernels/difference/difference_device.hpp"

namespace quantmap::QUANTMAP_DEVICE {
namespace {

__global__ void difference_rows(Global<const float> x, Global<const float> y, std::int64_t cols,
                                Global<RowDifference> out) {
  const Global<const float> from = x + blockIdx.x * cols, to = y + blockIdx.x * cols;
  RowDifference own;
  for (std::int64_t c = threadIdx.x; c < cols - kOffByOne; c += kThreads) add_difference(from[c], to[c], own);
  const RowDifference all = block_difference(own);
  if (threadIdx.x == 0) out[blockIdx.x] = all;
}

}  // namespace

void difference(const float* x, const float* y, std::int64_t rows, std::int64_t cols, RowDifference* out,
                Stream stream) {
  if (rows == 0) return;
  launch(difference_rows, rows, kThreads, 0, stream, x, y, cols, out);
}

}  // namespace quantmap::QUANTMAP_DEVICE
