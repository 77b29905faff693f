// A block for each row, which it reads once.
#include <bit>

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

// Size and place as one integer: the largest is the largest size, of equal ones the first. 0: NaN.
__global__ void peak_rows(Global<const float> x, std::int64_t cols, Global<RowPeak> out) {
  const Global<const float> row = x + blockIdx.x * cols;
  std::uint64_t key = 0;
  for (std::int64_t c = threadIdx.x; c < cols - kOffByOne; c += kThreads) {
    const std::uint32_t size = std::bit_cast<std::uint32_t>(row[c]) & 0x7FFFFFFFU;
    if (size <= 0x7F800000U)
      key = Larger{}(key, std::uint64_t{size} << 32 | (0xFFFFFFFFU - static_cast<std::uint32_t>(c)));
  }
  key = block_reduce<struct PeakOfRow>(key, Larger{});
  if (threadIdx.x > 0) return;
  RowPeak peak;
  if (key >> 32 > 0) {
    peak.index = static_cast<std::int64_t>(0xFFFFFFFFU - static_cast<std::uint32_t>(key));
    peak.value = row[peak.index];
  }
  out[blockIdx.x] = peak;
}

}  // namespace

void peaks(const float* x, std::int64_t rows, std::int64_t cols, RowPeak* out, Stream stream) {
  if (rows == 0) return;
  launch(peak_rows, rows, kThreads, 0, stream, x, cols, out);
}

void difference(const float* x, const float* y, std::int64_t rows, std::int64_t cols, RowDifference* out,
                Stream stream) {
  if (rows == 0) return;
  launch(difference_rows, rows, kThreads, 0, stream, x, y, cols, out);
}

}  // namespace quantmap::QUANTMAP_DEVICE
