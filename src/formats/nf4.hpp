// NF4 (Dettmers et al. 2023, arXiv 2305.14314; bitsandbytes 0.50.2): blocks of 64 along the flattened tensor,
// FP32 absmax, y = clamp(fl(x * fl(1/absmax)), -1, 1), code = number of midpoints strictly below y (a tie
// goes to the lower level), value = level * absmax. formats.md, section 5. An all-zero block has code 7
// (D12), and so has a zero in a block whose fl(1/absmax) overflows.
//
// Nested ("double quantization"): the absmax, less their mean, in blocks of 256 with their own absmax, as the
// nearest entry of a signed 8-bit dynamic map.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "core/simd.hpp"

namespace quantmap {

inline constexpr std::int64_t kNf4Block = 64;
inline constexpr std::int64_t kNf4NestedBlock = 256;

inline constexpr std::array<float, 16> kNf4Levels = {
    -1.0F,           -0x1.647362p-1F, -0x1.0cd66p-1F,  -0x1.94654p-2F,
    -0x1.23449ap-2F, -0x1.7a6a7ep-3F, -0x1.74f0e2p-4F, 0.0F,
    0x1.45f5fep-4F,  0x1.4995c6p-3F,  0x1.f809bap-3F,  0x1.5a0674p-2F,
    0x1.c3497p-2F,   0x1.200f56p-1F,  0x1.722766p-1F,  1.0F};

inline constexpr std::array<float, 15> kNf4Midpoints = [] {
  std::array<float, 15> midpoints{};
  for (std::size_t i = 0; i < 15; ++i) midpoints[i] = (kNf4Levels[i] + kNf4Levels[i + 1]) / 2;
  return midpoints;
}();

// The bits in which neighbouring levels differ.
inline constexpr std::array<std::uint32_t, 15> kNf4Steps = [] {
  std::array<std::uint32_t, 15> steps{};
  for (std::size_t i = 0; i < 15; ++i) {
    steps[i] = std::bit_cast<std::uint32_t>(kNf4Levels[i]) ^ std::bit_cast<std::uint32_t>(kNf4Levels[i + 1]);
  }
  return steps;
}();

// The value that is compared with the midpoints.
QUANTMAP_HD constexpr float nf4_normalized(float x, float inverse_absmax) {
  const float y = x * inverse_absmax;
  const float clamped = y < -1.0F ? -1.0F : y > 1.0F ? 1.0F : y;
  return x == 0 ? 0.0F : clamped;
}

QUANTMAP_HD constexpr std::uint32_t nf4_encode(float normalized) {
  std::uint32_t code = 0;
  for (const float midpoint : kNf4Midpoints) code += midpoint < normalized ? 1 : 0;
  return code;
}

// The level that nf4_encode's code decodes to, without the code: each midpoint below flips the bits in which
// its two levels differ. Masks vectorize; a table does not, nor does a chain of choices.
QUANTMAP_INLINE float nf4_round(float normalized) {
  auto bits = std::bit_cast<std::uint32_t>(kNf4Levels[0]);
#pragma GCC unroll 15
  for (std::size_t i = 0; i < kNf4Midpoints.size(); ++i) {
    const std::uint32_t below = 0U - static_cast<std::uint32_t>(kNf4Midpoints[i] < normalized);
    bits ^= below & kNf4Steps[i];
  }
  return std::bit_cast<float>(bits);
}

// bitsandbytes' signed dynamic map of 8 bits: 0, 1, and +-10^(i-6) times the midpoints of 2^i equal parts of
// [0.1, 1], i = 0..6; sorted. The parts are torch.linspace's: from both ends, one rounding for start + step *
// k.
const std::array<float, 256>& nf4_dynamic_map();
std::uint32_t nf4_dynamic_encode(float normalized);  // nearest entry, ties to the lower

}  // namespace quantmap
