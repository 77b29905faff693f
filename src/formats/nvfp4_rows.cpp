// NVFP4: see row_kernels.hpp. A row is cut into chunks of blocks: all maxima, all scales, then all values, so
// that the divisions of one block do not wait for those of another.
#include "formats/nvfp4.hpp"

#include <bit>

#include "core/simd.hpp"
#include "formats/extent.hpp"
#include "formats/row_kernels.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kBlock = kNvfp4Block;
constexpr std::uint32_t kNanBits = 0x7FC00000U;

// Loops over a block's 16 values are kept as loops (GCC would unroll them before it vectorizes).
QUANTMAP_INLINE std::uint32_t block_amax(const float* x) {
  std::int32_t amax = 0;
#pragma GCC unroll 1
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const std::int32_t magnitude = std::bit_cast<std::int32_t>(x[i]) & 0x7FFFFFFF;
    amax = magnitude > amax ? magnitude : amax;
  }
  return static_cast<std::uint32_t>(amax);
}

QUANTMAP_INLINE float e2m1_code(float y, std::int32_t& clamped) {
  const auto bits = std::bit_cast<std::uint32_t>(y);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  constexpr auto kCap = std::bit_cast<std::uint32_t>(2 * Fp4E2M1::kMax);
  const float rounded = Fp4E2M1::round_magnitude(std::bit_cast<float>(magnitude < kCap ? magnitude : kCap));
  const bool beyond = rounded > Fp4E2M1::kMax;
  clamped += beyond ? 1 : 0;
  const float code = beyond ? Fp4E2M1::kMax : rounded;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(code) | (bits & 0x80000000U));
}

// Copies a short last block into `padded`; returns where the block's 16 values lie.
QUANTMAP_INLINE const float* whole_block(const float* x, std::int64_t begin, std::int64_t n, float* padded) {
  if (begin + kBlock <= n) return x + begin;
  for (std::int64_t i = 0; i < kBlock; ++i) padded[i] = begin + i < n ? x[begin + i] : 0.0F;
  return padded;
}

QUANTMAP_INLINE void copy_block(const float* values, float* out, std::int64_t begin, std::int64_t n) {
  if (begin + kBlock <= n) {
    for (std::int64_t i = 0; i < kBlock; ++i) out[begin + i] = values[i];
  } else {
    for (std::int64_t i = begin; i < n; ++i) out[i] = values[i - begin];
  }
}

constexpr std::int64_t kChunk = 64;  // blocks

// One block of any values under its scale's product with g and the factor of its codes.
QUANTMAP_INLINE void round_block(const float* x, std::uint32_t amax, float divisor, float factor, float* out,
                                 QuantCounts& counts) {
  if (amax >= 0x7F800000U) {
    counts.nonfinite += count_nonfinite(x, kBlock);
    for (std::int64_t i = 0; i < kBlock; ++i) out[i] = std::bit_cast<float>(kNanBits);
  } else if (divisor == 0) {
    // A block whose scale (or its product with g) is zero has codes 0, never negative.
    ++(amax == 0 ? counts.zero_groups : counts.underflow_blocks);
    for (std::int64_t i = 0; i < kBlock; ++i) out[i] = 0;
  } else {
    std::int32_t clamped = 0;
    QUANTMAP_ELEMENTWISE
#pragma GCC unroll 1
    for (std::int64_t i = 0; i < kBlock; ++i) out[i] = e2m1_code(x[i] / divisor, clamped) * factor;
    counts.saturated += clamped;
  }
}

// At most kChunk blocks.
QUANTMAP_INLINE void round_blocks(const float* x, std::int64_t count, float g, bool decode, float* out,
                                  QuantCounts& counts) {
  std::uint32_t maxima[kChunk];
  float divisors[kChunk];  // fl(s * g)
  float factors[kChunk];   // what a code is multiplied with
  for (std::int64_t b = 0; b < count; ++b) maxima[b] = block_amax(one_block(x + b * kBlock));
  std::int32_t special = 0;
  for (std::int64_t b = 0; b < count; ++b) {
    const float amax = std::bit_cast<float>(maxima[b]);
    const float base = amax / 6.0F / g;
    const float scale = Fp8E4M3::round_magnitude(base < 448.0F ? base : 448.0F);
    const float divisor = scale * g;
    divisors[b] = divisor;
    factors[b] = decode ? divisor : scale;
    // Below 6.5, which rounds to 6, no value of the block is beyond the range; zeros and NaN fail too.
    special |= amax / divisor < 6.5F ? 0 : 1;
  }
  if (special) {
    for (std::int64_t b = 0; b < count; ++b)
      round_block(x + b * kBlock, maxima[b], divisors[b], factors[b], out + b * kBlock, counts);
    return;
  }
  for (std::int64_t b = 0; b < count; ++b) {
    const float* from = one_block(x + b * kBlock);
    float* to = out + b * kBlock;
    const float divisor = divisors[b];
    const float factor = factors[b];
    QUANTMAP_ELEMENTWISE
#pragma GCC unroll 1
    for (std::int64_t i = 0; i < kBlock; ++i) {
      const float y = from[i] / divisor;
      const auto bits = std::bit_cast<std::uint32_t>(y);
      const float code = Fp4E2M1::round_magnitude(std::bit_cast<float>(bits & 0x7FFFFFFFU));
      to[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(code) | (bits & 0x80000000U)) * factor;
    }
  }
}

}  // namespace

QUANTMAP_SIMD void round_nvfp4(const float* x, std::int64_t n, float g, bool decode, float* out,
                               QuantCounts& counts) {
  const std::int64_t blocks = n / kBlock;
  for (std::int64_t first = 0; first < blocks; first += kChunk) {
    const std::int64_t count = blocks - first < kChunk ? blocks - first : kChunk;
    round_blocks(x + first * kBlock, count, g, decode, out + first * kBlock, counts);
  }
  if (const std::int64_t whole = blocks * kBlock; whole < n) {
    float padded[kBlock] = {};
    for (std::int64_t i = whole; i < n; ++i) padded[i - whole] = x[i];
    round_blocks(padded, 1, g, decode, padded, counts);
    for (std::int64_t i = whole; i < n; ++i) out[i] = padded[i - whole];
  }
}

QUANTMAP_SIMD void round_nvfp4_4over6(const float* x, std::int64_t n, float amax, bool decode, float* out,
                                      QuantCounts& counts) {
  const FourOverSix tensor(amax);
  float padded[kBlock];
  std::int64_t saturated = 0;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const float* block = whole_block(x, begin, n, padded);
    const std::uint32_t largest = block_amax(block);
    if (largest >= 0x7F800000U) {
      counts.nonfinite += count_nonfinite(block, kBlock);
      float values[kBlock];
      for (float& value : values) value = std::bit_cast<float>(kNanBits);
      copy_block(values, out, begin, n);
      continue;
    }
    const float base = std::bit_cast<float>(largest) / 6.0F * tensor.encode_scale;
    const float wide = 1.5F * base;
    float scales[2] = {Fp8E4M3::round_magnitude(base < 448.0F ? base : 448.0F),
                       Fp8E4M3::round_magnitude(wide < 448.0F ? wide : 448.0F)};
    float codes[2][kBlock];
    float squares[2][kBlock];
    std::int32_t clamped[2] = {0, 0};
    for (int k = 0; k < 2; ++k) {
      const float scale = scales[k];
      const float encoder = tensor.encoder(scale);
      for (std::int64_t i = 0; i < kBlock; ++i) {
        codes[k][i] = e2m1_code(block[i] * encoder, clamped[k]);
        const float difference = tensor.compared(codes[k][i], scale) - block[i];
        squares[k][i] = difference * difference;
      }
    }
    float six = 0;  // running sums in element order: the order is part of the rule
    float four = 0;
    for (std::int64_t i = 0; i < kBlock; ++i) {
      six += squares[0][i];
      four += squares[1][i];
    }
    const int chosen = four < six ? 1 : 0;
    const float scale = scales[chosen];
    float values[kBlock];
    for (std::int64_t i = 0; i < kBlock; ++i) {
      const float product = codes[chosen][i] * scale;
      values[i] = decode ? product / tensor.encode_scale : product;
    }
    if (largest == 0) {
      ++counts.zero_groups;
    } else if (scale == 0) {
      ++counts.underflow_blocks;
    } else {
      saturated += clamped[chosen];
    }
    copy_block(values, out, begin, n);
  }
  counts.saturated += saturated;
}

}  // namespace quantmap
