#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/percentile/percentile.hpp"

namespace quantmap {

void percentiles_ref(const float* x, std::int64_t rows, std::int64_t cols, double fraction, float* out) {
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<float> sizes;
    for (std::int64_t c = 0; c < cols; ++c)
      if (std::isfinite(x[r * cols + c])) sizes.push_back(std::abs(x[r * cols + c]));
    std::sort(sizes.begin(), sizes.end());
    out[r] = std::numeric_limits<float>::quiet_NaN();
    for (std::size_t i = sizes.size(); i > 0; --i)
      if (static_cast<double>(i) >= fraction * static_cast<double>(sizes.size())) out[r] = sizes[i - 1];
  }
}

}  // namespace quantmap
