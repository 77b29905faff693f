// MX: see row_kernels.hpp.
#include <bit>

#include "core/simd.hpp"
#include "formats/element.hpp"
#include "formats/extent.hpp"
#include "formats/row_kernels.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kBlock = 32;
constexpr std::int64_t kChunk = 32;  // blocks

QUANTMAP_INLINE std::uint32_t block_amax(const float* x) {
  std::int32_t amax = 0;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const std::int32_t magnitude = std::bit_cast<std::int32_t>(x[i]) & 0x7FFFFFFF;
    amax = magnitude > amax ? magnitude : amax;
  }
  return static_cast<std::uint32_t>(amax);
}

struct BlockScale {
  float inverse, scale;  // NaN for a block with NaN or Inf
};
template <class Float>
QUANTMAP_INLINE BlockScale block_scale(std::uint32_t amax, MxScaleRule rule) {
  const std::uint32_t code = mx_scale_code(amax, rule, kMxElement<Float>);
  return {inverse_of_e8m0(code), float_from_e8m0(code)};
}

// A scaled magnitude on the element's grid, continued above its largest number. Of a finite block it is below
// 2 * kMax under every rule, since the scale is at least that of the maximum's binade.
template <class Float>
QUANTMAP_INLINE float rounded_magnitude(float y) {
  return Float::round_magnitude(std::bit_cast<float>(std::bit_cast<std::uint32_t>(y) & 0x7FFFFFFFU));
}

// The values of a block whose scale is a number.
template <class Float>
QUANTMAP_INLINE void round_values(const float* x, BlockScale s, float* out) {
  QUANTMAP_ELEMENTWISE
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const float y = x[i] * s.inverse;
    const float rounded = rounded_magnitude<Float>(y);
    const float held = rounded > Float::kMax ? Float::kMax : rounded;
    const std::uint32_t sign = std::bit_cast<std::uint32_t>(y) & 0x80000000U;
    float element = std::bit_cast<float>(std::bit_cast<std::uint32_t>(held) | sign);
    if constexpr (!Float::kNegativeZero) element += 0.0F;
    out[i] = element * s.scale;
  }
}

template <class Float>
QUANTMAP_INLINE std::int64_t count_saturated(const float* x, BlockScale s) {
  std::int32_t count = 0;
  for (std::int64_t i = 0; i < kBlock; ++i)
    count += rounded_magnitude<Float>(x[i] * s.inverse) > Float::kMax ? 1 : 0;
  return count;
}

// One block of any values.
template <class Float>
QUANTMAP_INLINE void round_block(const float* x, MxScaleRule rule, float* out, QuantCounts& counts) {
  const std::uint32_t amax = block_amax(x);
  const BlockScale s = block_scale<Float>(amax, rule);
  counts.zero_groups += amax == 0 ? 1 : 0;
  if (amax >= 0x7F800000U) {
    counts.nonfinite += count_nonfinite(x, kBlock);
    for (std::int64_t i = 0; i < kBlock; ++i) out[i] = s.scale;
  } else {
    counts.saturated += count_saturated<Float>(x, s);
    round_values<Float>(x, s, out);
  }
}

// Chunks of blocks: all maxima, all scales, then all values, so that one block does not wait for another's
// maximum. Whether any value of a block saturates is known from its maximum.
template <class Float>
QUANTMAP_INLINE void round_row(const float* x, std::int64_t n, MxScaleRule rule, float* out,
                               QuantCounts& counts) {
  const std::int64_t blocks = n / kBlock;
  std::uint32_t amax[kChunk];
  BlockScale scales[kChunk];
  for (std::int64_t first = 0; first < blocks; first += kChunk) {
    const std::int64_t count = blocks - first < kChunk ? blocks - first : kChunk;
    const float* from = x + first * kBlock;
    float* to = out + first * kBlock;
    std::uint32_t largest = 0;
    for (std::int64_t b = 0; b < count; ++b) {
      amax[b] = block_amax(one_block(from + b * kBlock));
      largest = amax[b] > largest ? amax[b] : largest;
    }
    if (largest >= 0x7F800000U) {
      for (std::int64_t b = 0; b < count; ++b)
        round_block<Float>(from + b * kBlock, rule, to + b * kBlock, counts);
      continue;
    }
    for (std::int64_t b = 0; b < count; ++b) scales[b] = block_scale<Float>(amax[b], rule);
    for (std::int64_t b = 0; b < count; ++b) {
      counts.zero_groups += amax[b] == 0 ? 1 : 0;
      const float top = rounded_magnitude<Float>(std::bit_cast<float>(amax[b]) * scales[b].inverse);
      if (top > Float::kMax) counts.saturated += count_saturated<Float>(from + b * kBlock, scales[b]);
      round_values<Float>(one_block(from + b * kBlock), scales[b], to + b * kBlock);
    }
  }
  if (const std::int64_t whole = blocks * kBlock; whole < n) {
    float padded[kBlock] = {};
    for (std::int64_t i = whole; i < n; ++i) padded[i - whole] = x[i];
    float values[kBlock];
    round_block<Float>(padded, rule, values, counts);
    for (std::int64_t i = whole; i < n; ++i) out[i] = values[i - whole];
  }
}

}  // namespace

QUANTMAP_SIMD void round_mx(Element element, const float* x, std::int64_t n, MxScaleRule rule, float* out,
                            QuantCounts& counts) {
  with_float(element,
             [&](auto type) QUANTMAP_INLINE_LAMBDA { round_row<decltype(type)>(x, n, rule, out, counts); });
}

}  // namespace quantmap
