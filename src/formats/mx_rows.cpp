// MX: see row_kernels.hpp.
#include <bit>

#include "core/simd.hpp"
#include "formats/element.hpp"
#include "formats/extent.hpp"
#include "formats/row_kernels.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kBlock = 32;

template <class Float>
QUANTMAP_INLINE void round_block(const float* x, MxScaleRule rule, float* out, std::int64_t& saturated,
                                 std::int64_t& zeros, std::int64_t& poisoned) {
  std::int32_t amax = 0;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const std::int32_t magnitude = std::bit_cast<std::int32_t>(x[i]) & 0x7FFFFFFF;
    amax = magnitude > amax ? magnitude : amax;
  }
  const std::uint32_t code = mx_scale_code(static_cast<std::uint32_t>(amax), rule, kMxElement<Float>);
  const float inverse = inverse_of_e8m0(code);
  const float scale = float_from_e8m0(code);
  constexpr auto kCap = std::bit_cast<std::uint32_t>(2 * Float::kMax);
  std::int32_t beyond_range = 0;
  QUANTMAP_ELEMENTWISE
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(x[i] * inverse);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    const float rounded = Float::round_magnitude(std::bit_cast<float>(magnitude < kCap ? magnitude : kCap));
    const bool beyond = rounded > Float::kMax;
    beyond_range += beyond ? 1 : 0;
    const float value = beyond ? Float::kMax : rounded;
    float element = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | (bits & 0x80000000U));
    if constexpr (!Float::kNegativeZero) element += 0.0F;
    out[i] = element * scale;
  }
  zeros += amax == 0 ? 1 : 0;
  const bool nan = code == kE8m0Nan;
  poisoned += nan ? 1 : 0;
  saturated += nan ? 0 : beyond_range;
}

template <class Float>
QUANTMAP_INLINE void round_row(const float* x, std::int64_t n, MxScaleRule rule, float* out,
                               QuantCounts& counts) {
  std::int64_t saturated = 0;
  std::int64_t zeros = 0;
  std::int64_t poisoned = 0;
  // Before the row is overwritten: out may be x.
  const std::int64_t whole = n / kBlock * kBlock;
  std::int64_t nonfinite = 0;
  for (std::int64_t begin = 0; begin < whole; begin += kBlock) {
    const std::int64_t before = poisoned;
    float values[kBlock];
    round_block<Float>(x + begin, rule, values, saturated, zeros, poisoned);
    if (poisoned != before) nonfinite += count_nonfinite(x + begin, kBlock);
    for (std::int64_t i = 0; i < kBlock; ++i) out[begin + i] = values[i];
  }
  if (whole < n) {
    float padded[kBlock] = {};
    float values[kBlock];
    for (std::int64_t i = whole; i < n; ++i) padded[i - whole] = x[i];
    const std::int64_t before = poisoned;
    round_block<Float>(padded, rule, values, saturated, zeros, poisoned);
    if (poisoned != before) nonfinite += count_nonfinite(padded, kBlock);
    for (std::int64_t i = whole; i < n; ++i) out[i] = values[i - whole];
  }
  counts.saturated += saturated;
  counts.zero_groups += zeros;
  counts.nonfinite += nonfinite;
}

}  // namespace

QUANTMAP_SIMD void round_mx(Element element, const float* x, std::int64_t n, MxScaleRule rule, float* out,
                            QuantCounts& counts) {
  with_float(element,
             [&](auto type) QUANTMAP_INLINE_LAMBDA { round_row<decltype(type)>(x, n, rule, out, counts); });
}

}  // namespace quantmap
