// The element of MXINT8: a signed byte of two's complement in units of 1/64, -127..127 (-128 is left unused),
// so that the largest is 127/64. Nearest, ties to even; no negative zero, no Inf, no NaN. OCP Microscaling
// Formats v1.0; formats.md, section 3. The interface is that of Minifloat, but for codes and the sign of
// zero.
#pragma once

#include <cmath>

#include "formats/minifloat.hpp"

namespace quantmap {

struct MxInt8 {
  static constexpr int kBits = 8;
  static constexpr int kMantissaBits = 6;
  static constexpr int kMaxExponent = 0;
  static constexpr bool kNegativeZero = false;
  static constexpr float kMax = 127.0F / 64;

  QUANTMAP_HD static float decode(std::uint32_t code) {
    return static_cast<float>(static_cast<std::int8_t>(static_cast<std::uint8_t>(code))) / 64;
  }
  // Beyond the range and Inf: the largest number; NaN: the largest, as the other elements without a NaN.
  QUANTMAP_HD static std::uint32_t encode_saturating(float x) {
    const float units = std::nearbyint(x * 64);
    const float held = units < -127.0F ? -127.0F : units > 127.0F || std::isnan(units) ? 127.0F : units;
    return static_cast<std::uint8_t>(static_cast<std::int8_t>(held));
  }
  // As Minifloat::round_magnitude: 2^17 is where a float's last place is 1/64.
  QUANTMAP_HD static QUANTMAP_INLINE float round_magnitude(float magnitude) {
    return (magnitude + 0x1p17F) - 0x1p17F;
  }
};

}  // namespace quantmap
