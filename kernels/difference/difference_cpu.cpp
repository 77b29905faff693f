#include <cmath>

#include "kernels/difference/difference.hpp"
#include "kernels/difference/difference_paths.hpp"

namespace quantmap {
namespace {

auto best_path() {
  for (const DifferencePath& path : difference_paths())
    if (path.runs_here()) return path.add;
  return difference_paths().back().add;
}

}  // namespace

// No sum of finite floats' squares overflows a double, so a sum that is not finite tells of a value that is
// not. Such rows are rare and take the plain path.
RowDifference row_difference(const float* x, const float* y, std::int64_t count, const float* next) {
  static const auto add_row = best_path();
  RowDifference row;
  add_row(x, y, count, next, row);
  if (!std::isfinite(row.reference2 + row.value2)) return row_difference_ref(x, y, count);
  return row;
}

RowPeak row_peak(const float* x, std::int64_t count) {
  RowPeak peak;
  for (std::int64_t i = 0; i < count; ++i)
    if (std::abs(x[i]) > std::abs(peak.value)) peak = {i, x[i]};
  return peak;
}

}  // namespace quantmap
