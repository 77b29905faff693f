// BF16: 1 sign, 8 exponent, 7 mantissa bits, bias 127; the upper half of an IEEE binary32.
// Rounding: nearest, ties to even (formats.md, section 1). NaN stays NaN (quiet, payload cut).
#pragma once

#include <bit>
#include <cstdint>

#include "core/simd.hpp"

namespace quantmap {

QUANTMAP_HD constexpr std::uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40U;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? quiet : rounded);
}

QUANTMAP_HD constexpr float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

QUANTMAP_HD constexpr float round_to_bf16(float value) { return float_from_bf16(bf16_from_float(value)); }

}  // namespace quantmap
