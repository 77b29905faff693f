// The block scale of the OCP Microscaling formats (MX v1.0, section 6.3) under each rule that tools use;
// formats.md, section 3. `amax_bits` are the bits of the largest magnitude in a block of 32; Inf or NaN give
// FF.
#pragma once

#include "formats/e8m0.hpp"
#include "formats/spec.hpp"

namespace quantmap {

struct MxElement {
  std::uint32_t largest_exponent;  // emax: 8 for E4M3, 2 for E2M1
  std::uint32_t mantissa_bits;
  float inverse_of_max;  // fl(1 / largest number)
};
template <class Float>
inline constexpr MxElement kMxElement{Float::kMaxExponent, Float::kMantissaBits, 1.0F / Float::kMax};

QUANTMAP_HD constexpr std::uint32_t mx_scale_code(std::uint32_t amax_bits, MxScaleRule rule,
                                                  const MxElement& element) {
  if (amax_bits >= 0x7F800000U) return kE8m0Nan;
  std::uint32_t exponent = amax_bits >> 23;
  switch (rule) {
    case MxScaleRule::floor:
      break;
    case MxScaleRule::ceil:
      exponent += (amax_bits & 0x7FFFFFU) > 0 ? 1 : 0;
      break;
    case MxScaleRule::even:
      exponent = (amax_bits + (1U << (22 - element.mantissa_bits))) >> 23;
      break;
    case MxScaleRule::rceil:
      return e8m0_up(std::bit_cast<float>(amax_bits) * element.inverse_of_max);
  }
  return exponent > element.largest_exponent ? exponent - element.largest_exponent : 0;
}

}  // namespace quantmap
