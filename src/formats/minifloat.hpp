// Small binary floats (formats.md, section 1): sign, exponent, mantissa, decoded as
//   E = 0: (-1)^s * M * 2^(1-bias-m), else (-1)^s * (1 + M/2^m) * 2^(E-bias).
// Rounding is once from binary32, nearest, ties to even; then the result is compared with the largest number
// (so E4M3's 464 is still 448). Overflow, Inf and NaN follow CUDA's __nv_cvt_float_to_fp8/fp6/fp4, SATFINITE
// and NOSAT.
//
// Two formulations that share no step, held against each other by the tests: codes by integer arithmetic, and
// values by adding and subtracting a power of two (which vectorizes).
#pragma once

#include <bit>
#include <cstdint>

#include "core/simd.hpp"

namespace quantmap {

// What the codes with all exponent bits set mean.
enum class TopCodes : std::uint8_t {
  ieee,     // Inf for mantissa 0, NaN else
  one_nan,  // numbers, but NaN where the mantissa is all ones (the `fn` formats)
  numbers,  // numbers only: NaN encodes to the largest number
};

template <int kExponentBits, int kMantissa, int kBias, TopCodes kTop>
struct Minifloat {
  static constexpr int kMantissaBits = kMantissa;
  static constexpr int kBits = 1 + kExponentBits + kMantissaBits;
  static constexpr std::uint32_t kSign = 1U << (kBits - 1);
  static constexpr std::uint32_t kAllOnes = kSign - 1;
  static constexpr std::uint32_t kInfinity = kAllOnes ^ ((1U << kMantissaBits) - 1);  // ieee only
  static constexpr std::uint32_t kMaxCode = kTop == TopCodes::ieee      ? kInfinity - 1
                                            : kTop == TopCodes::one_nan ? kAllOnes - 1
                                                                        : kAllOnes;
  static constexpr std::uint32_t kNan = kAllOnes;  // for `numbers` this is the largest number

  QUANTMAP_HD static constexpr float decode(std::uint32_t code) {
    const std::uint32_t magnitude = code & kAllOnes;
    const std::uint32_t sign = (code & kSign) << (32 - kBits);
    if (magnitude > kMaxCode) {
      const bool infinite = kTop == TopCodes::ieee && magnitude == kInfinity;
      return std::bit_cast<float>(sign | (infinite ? 0x7F800000U : 0x7FC00000U));
    }
    const std::uint32_t mantissa = magnitude & ((1U << kMantissaBits) - 1);
    const std::uint32_t exponent = magnitude >> kMantissaBits;
    if (exponent == 0) {
      const float value = static_cast<float>(mantissa) * kMinSubnormal;
      return sign ? -value : value;
    }
    return std::bit_cast<float>(sign | (exponent + (127 - kBias)) << 23 | mantissa << (23 - kMantissaBits));
  }

  // SATFINITE: every quantizer. Beyond the range and Inf: the largest number; NaN: kNan, its sign dropped.
  QUANTMAP_HD static constexpr std::uint32_t encode_saturating(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU;
    if (bits > 0x7F800000U) return kNan;
    const std::uint32_t code = round_to_code(bits);
    return sign_of(x) | (code > kMaxCode ? kMaxCode : code);
  }

  // NOSAT: overflow becomes Inf (ieee) or NaN with its sign (one_nan); `numbers` saturates all the same.
  QUANTMAP_HD static constexpr std::uint32_t encode(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU;
    if (bits > 0x7F800000U) return kNan;
    const std::uint32_t code = round_to_code(bits);
    if (code <= kMaxCode) return sign_of(x) | code;
    return sign_of(x) | (kTop == TopCodes::ieee ? kInfinity : kTop == TopCodes::one_nan ? kNan : kMaxCode);
  }

  // A magnitude in [0, 2 * kMax] rounded to the format's grid, continued above kMax: round first, then
  // compare. Adding 2^(e+23-m), whose ulp is the grid's step 2^(e-m) in the binade e of the value, rounds
  // there.
  QUANTMAP_HD static QUANTMAP_INLINE float round_magnitude(float magnitude) {
    constexpr std::uint32_t kMinNormalBits = static_cast<std::uint32_t>(128 - kBias) << 23;
    const std::uint32_t binade = std::bit_cast<std::uint32_t>(magnitude) & 0x7F800000U;
    const std::uint32_t at_least = binade > kMinNormalBits ? binade : kMinNormalBits;
    const float shift =
        std::bit_cast<float>(at_least + (static_cast<std::uint32_t>(23 - kMantissaBits) << 23));
    return (magnitude + shift) - shift;
  }

  static constexpr bool kNegativeZero = true;
  static constexpr int kMaxExponent = static_cast<int>(kMaxCode >> kMantissaBits) - kBias;  // of kMax
  static constexpr float kMinSubnormal =
      std::bit_cast<float>(static_cast<std::uint32_t>(128 - kBias - kMantissaBits) << 23);
  static constexpr float kMax =
      std::bit_cast<float>(((kMaxCode >> kMantissaBits) + (127 - kBias)) << 23 |
                           (kMaxCode & ((1U << kMantissaBits) - 1)) << (23 - kMantissaBits));

 private:
  QUANTMAP_HD static constexpr std::uint32_t sign_of(float x) {
    return (std::bit_cast<std::uint32_t>(x) >> 31) << (kBits - 1);
  }

  // The code of a magnitude (bits of a float, Inf included), maybe beyond kMaxCode. The binary32 significand
  // is shifted so that its unit is the code's last place; the carry of rounding moves into the exponent by
  // itself.
  QUANTMAP_HD static constexpr std::uint32_t round_to_code(std::uint32_t bits) {
    const std::uint32_t field = bits >> 23;
    const std::uint32_t own = field > 0 ? field : 1;
    constexpr std::uint32_t kMinNormalField = 128 - kBias;
    const std::uint32_t exponent = own > kMinNormalField ? own : kMinNormalField;
    const std::uint32_t significand = (bits & 0x7FFFFFU) | (field > 0 ? 0x800000U : 0U);
    const std::uint32_t shift = exponent - own + (23 - kMantissaBits);
    if (shift > 24) return 0;  // below half the least subnormal
    const std::uint32_t kept = significand >> shift;
    const std::uint32_t rest = significand & ((1U << shift) - 1);
    const std::uint32_t half = 1U << (shift - 1);
    const std::uint32_t rounded = kept + ((rest > half || (rest == half && (kept & 1U))) ? 1 : 0);
    return ((exponent - kMinNormalField) << kMantissaBits) + rounded;
  }
};

}  // namespace quantmap
