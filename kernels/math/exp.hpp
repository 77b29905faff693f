// exp for FP32, at most 1 ulp over the whole range (tests/kernels holds it against a double twin), written so
// that a loop over it vectorizes. std::exp does not under IEEE flags (architecture.md, Arithmetic).
// exp(-inf) = 0, exp(NaN) = NaN, overflow to inf, gradual underflow.
#pragma once

#include <bit>
#include <cstdint>

#include "core/simd.hpp"

namespace quantmap {

QUANTMAP_HD QUANTMAP_INLINE float exp_f32(float x) {
  // x = n ln 2 + r, |r| <= ln(2)/2, ln 2 in two parts (Cody and Waite 1980): n * kHigh is exact.
  constexpr float kLog2e = 1.44269504f, kHigh = 0.693359375f, kLow = -2.12194440e-4f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  // Beyond these the result is inf or 0; comparisons are false for NaN, which passes through.
  const float bounded = x > 89.0f ? 89.0f : x < -105.0f ? -105.0f : x;
  const float shifted = bounded * kLog2e + kRound;
  const float n = shifted - kRound;
  const float high = bounded - n * kHigh;
  const float low = n * kLow;
  const float r = high - low;
  const float rest = (high - r) - low;  // what rounding r lost
  // exp(r) = 1 + r + r^2 q(r); coefficients of Cephes expf (Moshier 1989).
  float q = 1.9875691500e-4f;
  q = q * r + 1.3981999507e-3f;
  q = q * r + 8.3334519073e-3f;
  q = q * r + 4.1665795894e-2f;
  q = q * r + 1.6666665459e-1f;
  q = q * r + 5.0000001201e-1f;
  const float y = 1.0f + (r + (r * r * q + rest));
  // Two scalings by powers of two, so that neither leaves the normal range.
  const std::int32_t exponent = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRound);
  const std::int32_t half = exponent >> 1;
  const float scale1 = std::bit_cast<float>((half + 127) << 23);
  const float scale2 = std::bit_cast<float>((exponent - half + 127) << 23);
  return (y * scale1) * scale2;
}

}  // namespace quantmap
