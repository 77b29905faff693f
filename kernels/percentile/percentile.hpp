// A percentile of the sizes |x| of each row, over its finite values, exact: the nearest rank, the least size
// that at least `fraction` of them do not exceed. 1: amax. NaN where no value is finite.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/simd.hpp"

namespace quantmap {

// x: [rows][cols], out: [rows]; fraction in (0, 1].
void percentiles(const float* x, std::int64_t rows, std::int64_t cols, double fraction, float* out);
// By sorting.
void percentiles_ref(const float* x, std::int64_t rows, std::int64_t cols, double fraction, float* out);

// From 1 on; n > 0.
QUANTMAP_HD inline std::int64_t nearest_rank(double fraction, std::int64_t n) {
  const auto rank = static_cast<std::int64_t>(ceil(fraction * static_cast<double>(n)));
  return rank < 1 ? 1 : rank > n ? n : rank;
}

}  // namespace quantmap
