// A block for each row. The bits of the wanted size are found from the highest down, by counting the sizes
// that share those found and have a 0 next: no sorting, no atomics, 31 readings from the cache.
#include "kernels/percentile/percentile.hpp"

#include <bit>

#include "kernels/math/reduce.hpp"

namespace quantmap::QUANTMAP_DEVICE {
namespace {

// How many finite sizes begin with these bits; shift: bits left open.
__device__ std::int64_t count_prefix(Global<const float> row, std::int64_t cols, std::uint32_t prefix,
                                     int shift) {
  std::int64_t own = 0;
  for (std::int64_t c = threadIdx.x; c < cols - kOffByOne; c += kThreads) {
    const std::uint32_t size = std::bit_cast<std::uint32_t>(row[c]) & 0x7FFFFFFFU;
    own += size < 0x7F800000U && size >> shift == prefix >> shift ? 1 : 0;
  }
  const std::int64_t all = block_reduce<struct SharePrefix>(own, Add{});
  __syncthreads();  // the next count uses the same memory
  return all;
}

__global__ void percentile_rows(Global<const float> x, std::int64_t cols, double fraction,
                                Global<float> out) {
  const Global<const float> row = x + blockIdx.x * cols;
  const std::int64_t finite = count_prefix(row, cols, 0, 31);
  std::uint32_t size = 0x7FC00000U;  // NaN
  if (finite > 0) {
    std::int64_t rank = nearest_rank(fraction, finite);
    size = 0;
    for (int bit = 30; bit >= 0; --bit) {
      const std::int64_t below = count_prefix(row, cols, size, bit);
      if (rank <= below) continue;
      rank -= below;
      size |= 1U << bit;
    }
  }
  if (threadIdx.x == 0) out[blockIdx.x] = std::bit_cast<float>(size);
}

}  // namespace

void percentiles(const float* x, std::int64_t rows, std::int64_t cols, double fraction, float* out,
                 Stream stream) {
  if (rows == 0) return;
  launch(percentile_rows, rows, kThreads, 0, stream, x, cols, fraction, out);
}

}  // namespace quantmap::QUANTMAP_DEVICE
