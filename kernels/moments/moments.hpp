// Central moments of a row: count, mean and the sums of the second, third and fourth powers of the distances
// from the mean, over its finite values; everything in double. They merge by Chan's and Pébay's formulas
// (measure/moments.hpp).
#pragma once

#include <cstdint>

namespace quantmap {

struct RowMoments {
  std::int64_t count = 0;  // finite values
  double mean = 0;
  double m2 = 0, m3 = 0, m4 = 0;  // sum (x - mean)^2, ^3, ^4
};

RowMoments row_moments(const float* x, std::int64_t count);
RowMoments row_moments_ref(const float* x, std::int64_t count);

}  // namespace quantmap
