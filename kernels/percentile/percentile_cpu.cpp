#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "kernels/percentile/percentile.hpp"

namespace quantmap {

void percentiles(const float* x, std::int64_t rows, std::int64_t cols, double fraction, float* out) {
  std::vector<std::uint32_t> sizes;  // bits compare as sizes do
  for (std::int64_t r = 0; r < rows; ++r) {
    sizes.clear();
    for (std::int64_t c = 0; c < cols; ++c) {
      const std::uint32_t size = std::bit_cast<std::uint32_t>(x[r * cols + c]) & 0x7FFFFFFFU;
      if (size < 0x7F800000U) sizes.push_back(size);
    }
    out[r] = std::numeric_limits<float>::quiet_NaN();
    if (sizes.empty()) continue;
    const auto at = sizes.begin() + (nearest_rank(fraction, std::ssize(sizes)) - 1);
    std::nth_element(sizes.begin(), at, sizes.end());
    out[r] = std::bit_cast<float>(*at);
  }
}

}  // namespace quantmap
