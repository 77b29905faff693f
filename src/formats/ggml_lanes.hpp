// Sixteen sub-blocks side by side: element i of sub-block k is at [i][k], so that a loop over k is one vector
// and the running sums of each sub-block keep the order of its elements.
#pragma once

#include <bit>
#include <cstdint>

#include "core/simd.hpp"

namespace quantmap::ggml {

inline constexpr int kLanes = 16;

template <int kValues>
struct alignas(64) Columns {
  float at[kValues][kLanes];
};
struct alignas(64) Lane {
  float at[kLanes];
};

// Sub-blocks that follow each other in x; where there are fewer than kLanes the last is repeated.
template <int kValues>
QUANTMAP_INLINE void load_columns(const float* x, int count, Columns<kValues>& columns) {
  for (int k = 0; k < kLanes; ++k) {
    const float* from = x + kValues * (k < count ? k : count - 1);
    for (int i = 0; i < kValues; ++i) columns.at[i][k] = from[i];
  }
}

// nearest_int() as a float, for |value| <= 2^22.
QUANTMAP_INLINE float nearest_float(float value) { return (value + 12582912.0F) - 12582912.0F; }

// take ? a : b, without a branch even where the compiler would rather have one.
QUANTMAP_INLINE float chosen(bool take, float a, float b) {
  const std::uint32_t mask = 0U - static_cast<std::uint32_t>(take);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(a) & mask) |
                              (std::bit_cast<std::uint32_t>(b) & ~mask));
}

QUANTMAP_INLINE float bounded(float value, float lowest, float highest) {
  const float above = value > lowest ? value : lowest;
  return above < highest ? above : highest;
}

// The first value with the largest magnitude, in each column.
template <int kValues>
QUANTMAP_INLINE void signed_maxima(const Columns<kValues>& x, Lane& largest) {
  Lane amax = {};
  largest = {};
  for (int i = 0; i < kValues; ++i) {
    for (int k = 0; k < kLanes; ++k) {
      const float value = x.at[i][k];
      const float magnitude = value < 0 ? -value : value;
      const bool more = magnitude > amax.at[k];
      amax.at[k] = more ? magnitude : amax.at[k];
      largest.at[k] = more ? value : largest.at[k];
    }
  }
}

// Values for which no sum or quotient of a search leaves FP32's normal range, each 0 or in [2^-60, 2^40), the
// largest at least 2^-40; what is beyond goes by the reference.
QUANTMAP_INLINE bool is_ordinary(const float* x, int n) {
  constexpr auto kLeast = std::bit_cast<std::int32_t>(0x1p-60F);
  constexpr auto kMost = std::bit_cast<std::int32_t>(0x1p40F);
  std::int32_t largest = 0;
  std::int32_t beyond = 0;
  for (int i = 0; i < n; ++i) {
    const std::int32_t magnitude = std::bit_cast<std::int32_t>(x[i]) & 0x7FFFFFFF;
    largest = magnitude > largest ? magnitude : largest;
    beyond |= magnitude != 0 && magnitude < kLeast ? 1 : 0;
  }
  return beyond == 0 && largest < kMost && largest >= std::bit_cast<std::int32_t>(0x1p-40F);
}

}  // namespace quantmap::ggml
