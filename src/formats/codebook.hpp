// A table of levels in [-1, 1] for values divided by their block's maximum (bitsandbytes' 4-bit types,
// formats.md, section 5): y = clamp(fl(x * fl(1/absmax)), -1, 1), level = number of midpoints strictly below
// y (a tie goes to the lower level), value = level * absmax. The midpoints are fl((L[i] + L[i+1]) / 2).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/simd.hpp"

namespace quantmap {

// The value that is compared with the midpoints. A zero stays one where fl(1/absmax) overflows.
QUANTMAP_HD constexpr float lookup_normalized(float x, float inverse_absmax) {
  const float y = x * inverse_absmax;
  const float clamped = y < -1.0F ? -1.0F : y > 1.0F ? 1.0F : y;
  return x == 0 ? 0.0F : clamped;
}

// Table: kLevels (ascending) and kCodes (of each level, as stored).
template <class Table>
struct Codebook {
  static constexpr std::size_t kCount = Table::kLevels.size();
  static constexpr auto kLevels = Table::kLevels;
  static constexpr std::array<float, kCount - 1> kMidpoints = [] {
    std::array<float, kCount - 1> between{};
    for (std::size_t i = 0; i + 1 < kCount; ++i) between[i] = (kLevels[i] + kLevels[i + 1]) / 2;
    return between;
  }();
  // The bits in which neighbouring levels differ.
  static constexpr std::array<std::uint32_t, kCount - 1> kSteps = [] {
    std::array<std::uint32_t, kCount - 1> differing{};
    for (std::size_t i = 0; i + 1 < kCount; ++i) {
      differing[i] = std::bit_cast<std::uint32_t>(kLevels[i]) ^ std::bit_cast<std::uint32_t>(kLevels[i + 1]);
    }
    return differing;
  }();

  QUANTMAP_HD static constexpr std::uint32_t encode(float normalized) {
    // Tables of a function, not of a class: device code can take an element of no other.
    constexpr auto midpoints = kMidpoints;
    constexpr auto codes = Table::kCodes;
    std::size_t level = 0;
    for (std::size_t i = 0; i < kCount - 1; ++i) level += midpoints[i] < normalized ? 1 : 0;
    return codes[level];
  }
  // Every code of four bits is some level.
  QUANTMAP_HD static constexpr float decode(std::uint32_t code) {
    constexpr auto levels = kLevels;
    constexpr auto codes = Table::kCodes;
    for (std::size_t i = 0; i < kCount; ++i) {
      if (codes[i] == code) return levels[i];
    }
    return 0;
  }
  // decode(encode(y)) without the code: each midpoint below flips the bits in which its two levels differ.
  // Masks vectorize; a table does not, nor does a chain of choices.
  static QUANTMAP_INLINE float round(float normalized) {
    auto bits = std::bit_cast<std::uint32_t>(kLevels[0]);
#pragma GCC unroll 15
    for (std::size_t i = 0; i < kCount - 1; ++i) {
      const std::uint32_t below = 0U - static_cast<std::uint32_t>(kMidpoints[i] < normalized);
      bits ^= below & kSteps[i];
    }
    return std::bit_cast<float>(bits);
  }
};

}  // namespace quantmap
