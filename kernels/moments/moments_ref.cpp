#include <cmath>

#include "kernels/moments/moments.hpp"

namespace quantmap {

RowMoments row_moments_ref(const float* x, std::int64_t count) {
  RowMoments row;
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(x[i])) continue;
    ++row.count;
    sum += x[i];
  }
  if (row.count == 0) return row;
  row.mean = sum / static_cast<double>(row.count);
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(x[i])) continue;
    const double gap = x[i] - row.mean, square = gap * gap;
    row.m2 += square;
    row.m3 += square * gap;
    row.m4 += square * square;
  }
  return row;
}

}  // namespace quantmap
