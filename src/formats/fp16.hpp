// FP16, IEEE 754 binary16: 1/5/10 bits, bias 15, largest 65504 (7BFF), least subnormal 2^-24, Inf 7C00, NaN
// above. Rounding: nearest, ties to even; stores follow IEEE, so overflow (from 65520) is Inf. formats.md,
// section 1.
#pragma once

#include "formats/minifloat.hpp"

namespace quantmap {

using Fp16 = Minifloat<5, 10, 15, TopCodes::ieee>;
static_assert(Fp16::kMaxCode == 0x7BFF && Fp16::kMax == 65504.0F && Fp16::kMinSubnormal == 0x1p-24F);

QUANTMAP_HD constexpr std::uint16_t fp16_from_float(float value) {
  return static_cast<std::uint16_t>(Fp16::encode(value));
}

// Without a branch, so that loops over it vectorize: the exponent is rebased by a product with 2^112, which
// is exact and turns binary16's subnormals into normal numbers.
QUANTMAP_HD constexpr float float_from_fp16(std::uint16_t bits) {
  const std::uint32_t magnitude = (bits & 0x7FFFU) << 13;
  const std::uint32_t special = magnitude >= 0x0F800000U ? 0x7F800000U : 0U;
  const float value = std::bit_cast<float>(magnitude) * 0x1p112F;
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | special | sign);
}

// round_to_fp16(x) = float_from_fp16(fp16_from_float(x)), in the value domain; with masks for choices, as
// above.
QUANTMAP_HD QUANTMAP_INLINE float round_to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t beyond = 0U - static_cast<std::uint32_t>(magnitude >= 0x477FF000U);  // 65520: to Inf
  const std::uint32_t nan = 0U - static_cast<std::uint32_t>(magnitude > 0x7F800000U);
  const float rounded = Fp16::round_magnitude(std::bit_cast<float>(magnitude & ~beyond));
  const std::uint32_t top = (0x7F800000U & beyond) | (0x00400000U & nan);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(rounded) | top | (bits & 0x80000000U));
}

}  // namespace quantmap
