// GGUF types without a search, in the value domain. A chunk is taken in three steps, so that the divisions of
// one block do not wait for another's: extremes of all blocks, all scales, all values.
#include <bit>
#include <cmath>

#include "formats/extent.hpp"
#include "formats/fp16.hpp"
#include "formats/ggml_encoders.hpp"
#include "formats/ggml_kernels.hpp"
#include "formats/ggml_lanes.hpp"

namespace quantmap::ggml {
namespace {

constexpr std::int64_t kMostBlocks = kGgmlChunk / 16;

QUANTMAP_INLINE float magnitude(float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU);
}

template <int kBlock>
QUANTMAP_INLINE float largest_magnitude(const float* x) {
  std::int32_t largest = 0;
  for (int i = 0; i < kBlock; ++i) {
    const std::int32_t bits = std::bit_cast<std::int32_t>(x[i]) & 0x7FFFFFFF;
    largest = bits > largest ? bits : largest;
  }
  return std::bit_cast<float>(largest);
}

// signed_maximum() of each block of 32 without a dependence between values: the largest above and below zero;
// of two that are equal the first counts.
QUANTMAP_INLINE void signed_maxima_of_32(const float* x, std::int64_t blocks, float* largest) {
  std::int32_t above[kMostBlocks];
  std::int32_t below[kMostBlocks];
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::int32_t up =
        0;  // as integers, negative floats are negative, and so are the others when turned round
    std::int32_t down = 0;
    for (std::int64_t i = 32 * b; i < 32 * (b + 1); ++i) {
      const auto bits = std::bit_cast<std::int32_t>(x[i]);
      const std::int32_t turned = bits ^ static_cast<std::int32_t>(0x80000000U);
      up = bits > up ? bits : up;
      down = turned > down ? turned : down;
    }
    above[b] = up;
    below[b] = down;
  }
  std::int32_t equal = 0;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const auto sign = static_cast<std::int32_t>(0x80000000U);
    largest[b] = std::bit_cast<float>(above[b] > below[b] ? above[b] : below[b] | sign);
    equal |= above[b] == below[b] ? 1 : 0;
  }
  if (equal == 0) return;
  for (std::int64_t b = 0; b < blocks; ++b)
    if (above[b] == below[b]) largest[b] = signed_maximum(x + 32 * b, 32);
}

// d = numerator / divisor, its inverse for the codes, and its FP16 for what they decode to.
QUANTMAP_INLINE void scales_of(const float* numerator, std::int64_t blocks, float divisor, float* inverse,
                               float* stored) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    const float d = numerator[b] / divisor;
    const float quotient = 1 / d;
    inverse[b] = magnitude(d) > kLeastScale ? quotient : 0.0F;
    stored[b] = round_to_fp16(d);
  }
}

template <int kHalf>
QUANTMAP_INLINE void round_signed(const float* x, std::int64_t n, float* y) {
  float largest[kMostBlocks];
  float inverse[kMostBlocks];
  float stored[kMostBlocks];
  const std::int64_t blocks = n / 32;
  signed_maxima_of_32(x, blocks, largest);
  scales_of(largest, blocks, -kHalf, inverse, stored);
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::int64_t i = 32 * b; i < 32 * (b + 1); ++i) {
      const int code = truncated(x[i] * inverse[b] + (kHalf + 0.5F), 2 * kHalf - 1);
      y[i] = static_cast<float>(code - kHalf) * stored[b];
    }
  }
}

template <int kHighest>
QUANTMAP_INLINE void round_offset(const float* x, std::int64_t n, float* y) {
  float low[kMostBlocks];
  float range[kMostBlocks];
  float inverse[kMostBlocks];
  float stored[kMostBlocks];
  const std::int64_t blocks = n / 32;
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::int32_t least = ordered_from_float(x[32 * b]);
    std::int32_t most = least;
    for (std::int64_t i = 32 * b; i < 32 * (b + 1); ++i) {
      const std::int32_t value = ordered_from_float(x[i]);
      least = value < least ? value : least;
      most = value > most ? value : most;
    }
    low[b] = float_from_ordered(least);
    range[b] = float_from_ordered(most) - low[b];
  }
  scales_of(range, blocks, kHighest, inverse, stored);
  for (std::int64_t b = 0; b < blocks; ++b) {
    const float min = round_to_fp16(low[b]);
    for (std::int64_t i = 32 * b; i < 32 * (b + 1); ++i) {
      const int code = truncated((x[i] - low[b]) * inverse[b] + 0.5F, kHighest);
      y[i] = static_cast<float>(code) * stored[b] + min;
    }
  }
}

// rounded_away() as a float, for |value| < 2^22: the greatest float below 1/2 is added to the magnitude and
// the fraction dropped. At a tie the sum lies halfway below the next whole number and rounds up to it; short
// of a tie it does not reach it.
QUANTMAP_INLINE float rounded_away_float(float value, float lowest, float highest) {
  constexpr float kBelowHalf = 0x1.FFFFFEp-2F;
  constexpr std::int32_t kLimit = 0x4A800000;  // 2^22; also for what is not finite, whose block is none
  const auto bits = std::bit_cast<std::int32_t>(value);
  const std::int32_t size = (bits & 0x7FFFFFFF) < kLimit ? bits & 0x7FFFFFFF : kLimit;
  const auto nearest = static_cast<float>(static_cast<int>(std::bit_cast<float>(size) + kBelowHalf));
  const std::int32_t sign = bits & static_cast<std::int32_t>(0x80000000U);
  const float code = std::bit_cast<float>(std::bit_cast<std::int32_t>(nearest) | sign) + 0.0F;  // never -0
  return bounded(code, lowest, highest);
}

// Codes rounded away from zero at ties, in [kLowest, kHighest], of the largest magnitude over kDivisor.
template <int kBlock, int kDivisor, int kLowest, int kHighest>
QUANTMAP_INLINE void round_to_largest(const float* x, std::int64_t n, float* y) {
  float largest[kMostBlocks];
  float inverse[kMostBlocks];
  float stored[kMostBlocks];
  const std::int64_t blocks = n / kBlock;
  for (std::int64_t b = 0; b < blocks; ++b) largest[b] = largest_magnitude<kBlock>(x + kBlock * b);
  scales_of(largest, blocks, kDivisor, inverse, stored);
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::int64_t i = kBlock * b; i < kBlock * (b + 1); ++i) {
      y[i] = rounded_away_float(x[i] * inverse[b], kLowest, kHighest) * stored[b];
    }
  }
}

// The nearest of kFp4Levels times d, the smaller magnitude at ties, never -0. Exact where |x| is not so far
// beyond the last level that the reference's differences round alike.
QUANTMAP_INLINE float nearest_fp4(float x, float d) {
  const float a = magnitude(x);
  float level = 0;
  level += a > 0.5F * d ? 1.0F : 0.0F;
  level += a > 1.5F * d ? 1.0F : 0.0F;
  level += a > 2.5F * d ? 1.0F : 0.0F;
  level += a > 3.5F * d ? 1.0F : 0.0F;
  level += a > 5.0F * d ? 2.0F : 0.0F;
  level += a > 7.0F * d ? 2.0F : 0.0F;
  level += a > 10.0F * d ? 4.0F : 0.0F;
  return (x < 0 ? 0.0F - level : level) * d;
}

// floor(log2f(a)), which is one more than the exponent for some numbers just below a power of two: those are
// left to log2f itself, as are subnormal ones.
QUANTMAP_INLINE int floor_log2f(float a) {
  const auto bits = std::bit_cast<std::uint32_t>(a);
  if ((bits & 0x7FFFFFU) < 0x7FFF00U && bits >= 0x00800000U) return static_cast<int>(bits >> 23) - 127;
  return static_cast<int>(std::floor(std::log2(a)));
}

}  // namespace

QUANTMAP_SIMD void round_q4_0(const float* x, std::int64_t n, float* y) { round_signed<8>(x, n, y); }
QUANTMAP_SIMD void round_q5_0(const float* x, std::int64_t n, float* y) { round_signed<16>(x, n, y); }
QUANTMAP_SIMD void round_q4_1(const float* x, std::int64_t n, float* y) { round_offset<15>(x, n, y); }
QUANTMAP_SIMD void round_q5_1(const float* x, std::int64_t n, float* y) { round_offset<31>(x, n, y); }
QUANTMAP_SIMD void round_q8_0(const float* x, std::int64_t n, float* y) {
  round_to_largest<32, 127, -127, 127>(x, n, y);
}
QUANTMAP_SIMD void round_ternary(const float* x, std::int64_t n, float* y) {
  round_to_largest<kSuper, 1, -1, 1>(x, n, y);
}
QUANTMAP_SIMD void round_q2_0(const float* x, std::int64_t n, float* y) {
  round_to_largest<64, 1, -1, 2>(x, n, y);
}

QUANTMAP_SIMD void round_q1_0(const float* x, std::int64_t n, float* y) {
  constexpr std::int64_t kBlock = 128;
  const std::int64_t blocks = n / kBlock;
  float sum[kGgmlChunk / kBlock] = {};
  // Running sums in element order, those of several blocks side by side.
  for (std::int64_t i = 0; i < kBlock; ++i) {
    for (std::int64_t b = 0; b < blocks; ++b) sum[b] += magnitude(x[kBlock * b + i]);
  }
  for (std::int64_t b = 0; b < blocks; ++b) {
    const float d = round_to_fp16(sum[b] / 128);
    for (std::int64_t i = kBlock * b; i < kBlock * (b + 1); ++i) y[i] = x[i] >= 0 ? d : -d;
  }
}

QUANTMAP_SIMD void round_mxfp4(const float* x, std::int64_t n, float* y) {
  for (std::int64_t b = 0; b < n; b += 32) {
    const float amax = largest_magnitude<32>(x + b);
    const int exponent = amax > 0 && amax < INFINITY ? floor_log2f(amax) - 2 + 127 : 0;
    const float d = half_e8m0(static_cast<std::uint8_t>(exponent > 0 ? exponent : 0));
    for (std::int64_t i = b; i < b + 32; ++i) y[i] = nearest_fp4(x[i], d);
  }
}

void round_nvfp4(const float* x, std::int64_t n, float* y) {
  for (std::int64_t b = 0; b < n; b += 16) {
    const float amax = largest_magnitude<16>(x + b);
    if (!(amax < INFINITY)) {
      for (std::int64_t i = b; i < b + 16; ++i) y[i] = std::bit_cast<float>(0x7FC00000U);
      continue;
    }
    const float d = half_ue4m3(ue4m3_from_amax(amax));
    if (amax > 0x1p16F * d) {  // d may be 0
      for (std::int64_t i = b; i < b + 16; ++i) y[i] = kFp4Levels[nearest_fp4_level(x[i], d)] * d;
      continue;
    }
    for (std::int64_t i = b; i < b + 16; ++i) y[i] = nearest_fp4(x[i], d);
  }
}

}  // namespace quantmap::ggml
