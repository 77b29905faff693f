#include <cmath>

#include "kernels/difference/difference.hpp"
#include "kernels/math/lanes.hpp"

namespace quantmap {

namespace {

// 0 iff every value is finite: v - v is 0 for finite v and NaN else.
QUANTMAP_SIMD bool all_finite(const float* x, std::int64_t count) {
  float lane_sum[kLanes] = {};
  for_lanes(count, [&](std::int64_t i, int lane) { lane_sum[lane] += x[i] - x[i]; });
  float sum = 0;
  for (const float value : lane_sum) sum += value;
  return sum == 0;
}

struct Peaks {
  float error, reference;
};

QUANTMAP_SIMD Peaks peaks(const float* x, const float* y, std::int64_t count) {
  float error[kLanes] = {}, reference[kLanes] = {};
  for_lanes(count, [&](std::int64_t i, int lane) {
    const float gap = std::abs(y[i] - x[i]), size = std::abs(x[i]);
    error[lane] = gap > error[lane] ? gap : error[lane];
    reference[lane] = size > reference[lane] ? size : reference[lane];
  });
  Peaks top{0, 0};
  for (int lane = 0; lane < kLanes; ++lane) {
    top.error = error[lane] > top.error ? error[lane] : top.error;
    top.reference = reference[lane] > top.reference ? reference[lane] : top.reference;
  }
  return top;
}

QUANTMAP_SIMD void sums(const float* x, const float* y, std::int64_t count, RowDifference& row) {
  LaneSum error2, reference2, value2, dot;
  for_lanes(count, [&](std::int64_t i, int lane) {
    const double a = x[i], b = y[i], gap = b - a;
    error2.lane[lane] += gap * gap;
    reference2.lane[lane] += a * a;
    value2.lane[lane] += b * b;
    dot.lane[lane] += a * b;
  });
  row.error2 = error2.total();
  row.reference2 = reference2.total();
  row.value2 = value2.total();
  row.dot = dot.total();
}

}  // namespace

// Non-finite values are rare: the row that has one takes the plain path.
RowDifference row_difference(const float* x, const float* y, std::int64_t count) {
  if (!all_finite(x, count) || !all_finite(y, count)) return row_difference_ref(x, y, count);
  RowDifference row;
  sums(x, y, count, row);
  const Peaks top = peaks(x, y, count);
  row.max_error = top.error;
  row.amax = top.reference;
  return row;
}

RowPeak row_peak(const float* x, std::int64_t count) {
  RowPeak peak;
  for (std::int64_t i = 0; i < count; ++i)
    if (std::abs(x[i]) > std::abs(peak.value)) peak = {i, x[i]};
  return peak;
}

}  // namespace quantmap
