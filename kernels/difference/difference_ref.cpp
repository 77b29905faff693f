#include <algorithm>
#include <cmath>

#include "kernels/difference/difference.hpp"

namespace quantmap {

RowDifference row_difference_ref(const float* x, const float* y, std::int64_t count) {
  RowDifference row;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(y[i]) || !std::isfinite(x[i])) {
      ++row.nonfinite;
      continue;
    }
    const double a = x[i], b = y[i];
    row.error2 += (b - a) * (b - a);
    row.reference2 += a * a;
    row.value2 += b * b;
    row.dot += a * b;
    row.max_error = std::max(row.max_error, static_cast<float>(std::abs(b - a)));
    row.amax = std::max(row.amax, std::abs(x[i]));
  }
  return row;
}

}  // namespace quantmap
