// Extremes of runs of floats, as integers: a float's bits, with the negative numbers' order turned round,
// compare like the float itself, and integer minima and maxima vectorize without relaxing IEEE. NaN sorts
// beyond Inf, so that one comparison at the end finds every non-finite value.
#pragma once

#include <bit>
#include <cstdint>

#include "formats/run_scale.hpp"

namespace quantmap {

constexpr std::int32_t ordered_from_float(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value);
  return bits ^ ((bits >> 31) & 0x7FFFFFFF);
}
constexpr float float_from_ordered(std::int32_t ordered) {
  return std::bit_cast<float>(ordered ^ ((ordered >> 31) & 0x7FFFFFFF));
}

// Widens lo[k], hi[k] by the k-th run of `run` values of x[0, n) (the last may be short); start them at 0,
// which is +0.
void widen_by_runs(const float* x, std::int64_t n, std::int64_t run, std::int32_t* lo, std::int32_t* hi);
// Widens lo[i], hi[i] by x[i]: one step down the columns of a matrix.
void widen_by_columns(const float* x, std::int64_t n, std::int32_t* lo, std::int32_t* hi);
Extent extent_of(std::int32_t lo, std::int32_t hi);

std::int64_t count_nonfinite(const float* x, std::int64_t n);

}  // namespace quantmap
