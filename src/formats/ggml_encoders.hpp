// One block of finite values to its bytes, a function for each type; encode_ggml dispatches to them.
#pragma once

#include <cmath>

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

// Index of the first of kFp4Levels with the least |level * d - x|; and the UE4M3 scale of 16 values.
int nearest_fp4_level(float x, float d);
std::uint8_t ue4m3_from_amax(float amax);

// Shared rules --------------------------------------------------------------------------------------------

// 1 / d; 0 for a scale of 0, and for one so small that its inverse is infinite (ggml then casts Inf to an
// integer, which C leaves undefined; the file's FP16 scale is 0 anyway).
inline constexpr float kLeastScale = 0x1p-128F;
QUANTMAP_INLINE float inverse_or_zero(float d) {
  const float magnitude = d < 0 ? -d : d;
  return magnitude > kLeastScale ? 1 / d : 0.0F;
}

// Toward zero, within [0, highest]; C's cast does the same.
QUANTMAP_INLINE int truncated(float value, int highest) {
  const auto top = static_cast<float>(highest);
  const float above = value > 0 ? value : 0.0F;
  return static_cast<int>(above < top ? above : top);
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

// Ties away from zero, within [lowest, highest].
inline int rounded_away(float value, int lowest, int highest) {
  return clamped(static_cast<int>(std::round(value)), lowest, highest);
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
