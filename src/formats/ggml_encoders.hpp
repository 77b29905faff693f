// One block of finite values to its bytes, a function for each type; encode_ggml dispatches to them.
#pragma once

#include "formats/ggml_layout.hpp"

namespace quantmap::ggml {

// ggml_legacy.cpp
void encode_block(const float* x, BlockQ4_0& block);
void encode_block(const float* x, BlockQ4_1& block);
void encode_block(const float* x, BlockQ5_0& block);
void encode_block(const float* x, BlockQ5_1& block);
void encode_block(const float* x, BlockQ8_0& block);
// ggml_k_quants.cpp
void encode_block(const float* x, BlockQ2K& block);
void encode_block(const float* x, BlockQ3K& block);
void encode_block(const float* x, BlockQ4K& block);
void encode_block(const float* x, BlockQ5K& block);
void encode_block(const float* x, BlockQ6K& block);
// ggml_iq4.cpp
void encode_block(const float* x, BlockIq4Nl& block);
void encode_block(const float* x, BlockIq4Xs& block);
// ggml_low_bits.cpp
void encode_block(const float* x, BlockTq1& block);
void encode_block(const float* x, BlockTq2& block);
void encode_block(const float* x, BlockQ1_0& block);
void encode_block(const float* x, BlockQ2_0& block);
// ggml_fp4.cpp; NVFP4 takes values that are not finite, since its sub-blocks have scales of their own.
void encode_block(const float* x, BlockMxfp4& block);
void encode_block(const float* x, BlockNvfp4& block);

// Shared rules --------------------------------------------------------------------------------------------

// 1 / d, 0 for a scale of 0.
QUANTMAP_INLINE float inverse_or_zero(float d) { return d != 0 ? 1 / d : 0.0F; }

// Toward zero, within [0, highest]; NaN is 0. C's cast does the same where it is defined.
QUANTMAP_INLINE int truncated(float value, int highest) {
  const auto top = static_cast<float>(highest);
  const float above = value > 0 ? value : 0.0F;
  return static_cast<int>(above < top ? above : top);
}

// Ties away from zero (roundf), within [lowest, highest]; NaN is 0.
QUANTMAP_INLINE int rounded_away(float value, int lowest, int highest) {
  const float magnitude = value < 0 ? -value : value;
  constexpr float kBeyond = 1024;
  const float bounded = magnitude < kBeyond ? magnitude : (magnitude > 0 ? kBeyond : 0.0F);
  const int whole = static_cast<int>(bounded);
  const int nearest = whole + (bounded - static_cast<float>(whole) >= 0.5F ? 1 : 0);
  const int code = value < 0 ? -nearest : nearest;
  return code < lowest ? lowest : code > highest ? highest : code;
}

// Nearest, ties to even, for |value| <= 2^22; what is beyond gives what ggml's nearest_int gives, which is
// some number (it adds 1.5 * 2^23 and takes the mantissa).
QUANTMAP_INLINE int nearest_int(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value + 12582912.0F);
  return static_cast<int>(bits & 0x007FFFFFU) - 0x00400000;
}

QUANTMAP_INLINE int clamped(int value, int lowest, int highest) {
  return value < lowest ? lowest : value > highest ? highest : value;
}

// The first value with the largest magnitude, with its sign.
QUANTMAP_INLINE float signed_maximum(const float* x, int n) {
  float largest = 0;
  float amax = 0;
  for (int i = 0; i < n; ++i) {
    const float magnitude = x[i] < 0 ? -x[i] : x[i];
    if (magnitude > amax) amax = magnitude, largest = x[i];
  }
  return largest;
}

}  // namespace quantmap::ggml
