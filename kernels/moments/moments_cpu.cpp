#include "kernels/math/lanes.hpp"
#include "kernels/moments/moments.hpp"

namespace quantmap {
namespace {

QUANTMAP_SIMD double sum_of(const float* x, std::int64_t count) {
  LaneSum sum;
  for_lanes(count, [&](std::int64_t i, int lane) { sum.lane[lane] += double{x[i]}; });
  return sum.total();
}

QUANTMAP_SIMD void central_sums(const float* x, std::int64_t count, RowMoments& row) {
  LaneSum m2, m3, m4;
  const double mean = row.mean;
  for_lanes(count, [&](std::int64_t i, int lane) {
    const double gap = x[i] - mean, square = gap * gap;
    m2.lane[lane] += square;
    m3.lane[lane] += square * gap;
    m4.lane[lane] += square * square;
  });
  row.m2 = m2.total();
  row.m3 = m3.total();
  row.m4 = m4.total();
}

}  // namespace

// Values that are not finite are rare: they show in the sum, and the row takes the plain path. (A sum of
// finite FP32 values in double is finite.)
RowMoments row_moments(const float* x, std::int64_t count) {
  RowMoments row;
  if (count == 0) return row;
  const double sum = sum_of(x, count);
  if (sum - sum != 0) return row_moments_ref(x, count);
  row.count = count;
  row.mean = sum / static_cast<double>(count);
  central_sums(x, count, row);
  return row;
}

}  // namespace quantmap
