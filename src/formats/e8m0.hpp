// E8M0: eight exponent bits, value 2^(c-127), no sign, no zero; FF is NaN. The block scale of the MX formats.
// Code 0 is 2^-127, a subnormal binary32: never flush. Scales are computed by a rule (mx_scale.hpp), not cast
// (formats.md, D2); the two casts here are CUDA's __nv_cvt_float_to_e8m0 SATFINITE, of a value that is zero,
// positive or NaN.
#pragma once

#include <bit>
#include <cstdint>

#include "core/simd.hpp"

namespace quantmap {

inline constexpr std::uint32_t kE8m0Nan = 0xFF;

QUANTMAP_HD constexpr float float_from_e8m0(std::uint32_t code) {
  if (code == kE8m0Nan) return std::bit_cast<float>(0x7FC00000U);
  return std::bit_cast<float>(code == 0 ? 0x00400000U : code << 23);
}

// 2^(127-c), what values are multiplied with before they are rounded; exact, a subnormal for c = FE.
QUANTMAP_HD constexpr float inverse_of_e8m0(std::uint32_t code) {
  if (code == kE8m0Nan) return std::bit_cast<float>(0x7FC00000U);
  return std::bit_cast<float>(code == 254 ? 0x00400000U : (254 - code) << 23);
}

QUANTMAP_HD constexpr std::uint32_t e8m0_toward_zero(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU;
  if (bits > 0x7F800000U) return kE8m0Nan;
  const std::uint32_t field = bits >> 23;
  return field > 254 ? 254 : field;
}

QUANTMAP_HD constexpr std::uint32_t e8m0_up(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU;
  if (bits > 0x7F800000U) return kE8m0Nan;
  const std::uint32_t field = bits >> 23;
  const std::uint32_t mantissa = bits & 0x7FFFFFU;
  const std::uint32_t up = field + (mantissa > (field == 0 ? 0x400000U : 0U) ? 1 : 0);
  return up > 254 ? 254 : up;
}

}  // namespace quantmap
