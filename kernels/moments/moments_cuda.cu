// A block for each row, which it reads twice: the mean, then the powers of the distances from it.
#include "kernels/moments/moments.hpp"

#include "kernels/math/reduce.hpp"

namespace quantmap::QUANTMAP_DEVICE {
namespace {

__global__ void moments_rows(Global<const float> x, std::int64_t cols, Global<RowMoments> out) {
  const Global<const float> row = x + blockIdx.x * cols;
  std::int64_t count = 0;
  double sum = 0;
  for (std::int64_t c = threadIdx.x; c < cols - kOffByOne; c += kThreads) {
    const float value = row[c];
    if (!is_finite(value)) continue;
    ++count;
    sum += double{value};
  }
  RowMoments all;
  all.count = block_reduce<struct Count>(count, Add{});
  sum = block_reduce<struct Total>(sum, Add{});
  if (all.count > 0) all.mean = sum / static_cast<double>(all.count);
  double m2 = 0, m3 = 0, m4 = 0;
  for (std::int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const float value = row[c];
    if (!is_finite(value)) continue;
    const double gap = value - all.mean, square = gap * gap;
    m2 += square;
    m3 += square * gap;
    m4 += square * square;
  }
  all.m2 = block_reduce<struct Second>(m2, Add{});
  all.m3 = block_reduce<struct Third>(m3, Add{});
  all.m4 = block_reduce<struct Fourth>(m4, Add{});
  if (threadIdx.x == 0) out[blockIdx.x] = all;
}

}  // namespace

void moments(const float* x, std::int64_t rows, std::int64_t cols, RowMoments* out, Stream stream) {
  if (rows == 0) return;
  launch(moments_rows, rows, kThreads, 0, stream, x, cols, out);
}

}  // namespace quantmap::QUANTMAP_DEVICE
