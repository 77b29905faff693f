#include "formats/extent.hpp"

#include <algorithm>
#include <limits>

#include "core/simd.hpp"
#include "formats/quantize.hpp"

namespace quantmap {
namespace {

constexpr std::int32_t kInfinity = 0x7F800000;  // also in the order of the integers
constexpr std::int32_t kMinusInfinity = -0x7F800001;

constexpr bool is_finite(float value) {
  return (std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU) < 0x7F800000U;
}

}  // namespace

QUANTMAP_SIMD void widen_by_runs(const float* x, std::int64_t n, std::int64_t run, std::int32_t* lo,
                                 std::int32_t* hi) {
  for (std::int64_t begin = 0, k = 0; begin < n; begin += run, ++k) {
    const std::int64_t end = begin + run < n ? begin + run : n;
    std::int32_t least = lo[k];
    std::int32_t most = hi[k];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int32_t value = ordered_from_float(x[i]);
      least = value < least ? value : least;
      most = value > most ? value : most;
    }
    lo[k] = least;
    hi[k] = most;
  }
}

QUANTMAP_SIMD void widen_by_columns(const float* x, std::int64_t n, std::int32_t* lo, std::int32_t* hi) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t value = ordered_from_float(x[i]);
    lo[i] = value < lo[i] ? value : lo[i];
    hi[i] = value > hi[i] ? value : hi[i];
  }
}

Extent extent_of(std::int32_t lo, std::int32_t hi) {
  return {float_from_ordered(lo), float_from_ordered(hi), lo <= kMinusInfinity || hi >= kInfinity};
}

QUANTMAP_SIMD std::int64_t count_nonfinite(const float* x, std::int64_t n) {
  std::int64_t count = 0;
  for (std::int64_t begin = 0; begin < n; begin += 1 << 20) {
    const std::int64_t end = begin + (1 << 20) < n ? begin + (1 << 20) : n;
    std::int32_t part = 0;  // 32 bits: as many lanes as values
    for (std::int64_t i = begin; i < end; ++i) {
      part += (std::bit_cast<std::int32_t>(x[i]) & 0x7FFFFFFF) >= kInfinity ? 1 : 0;
    }
    count += part;
  }
  return count;
}

TensorRange measure_range(std::span<const float> values) {
  std::int32_t lo = 0;
  std::int32_t hi = 0;
  const auto n = static_cast<std::int64_t>(values.size());
  if (n > 0) widen_by_runs(values.data(), n, n, &lo, &hi);
  TensorRange range;
  if (extent_of(lo, hi).nonfinite) {
    lo = hi = 0;
    for (const float value : values) {
      if (is_finite(value)) {
        widen_by_runs(&value, 1, 1, &lo, &hi);
      } else {
        ++range.nonfinite;
      }
    }
  }
  range.min = float_from_ordered(lo);
  range.max = float_from_ordered(hi);
  range.amax = std::max(range.max, -range.min);
  return range;
}

void TensorRange::merge(const TensorRange& other) {
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  amax = std::max(amax, other.amax);
  nonfinite += other.nonfinite;
}

}  // namespace quantmap
