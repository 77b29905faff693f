#include "formats/ggml_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/simd.hpp"
#include "formats/ggml_encode.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kChunk = 2048;   // values: whole blocks of every type
constexpr std::int64_t kMostBytes = 2;  // a value takes at most
constexpr std::int32_t kInfinityBits = 0x7F800000;

QUANTMAP_INLINE std::int32_t magnitude_bits(float value) {
  return std::bit_cast<std::int32_t>(value) & 0x7FFFFFFF;
}

QUANTMAP_INLINE std::int32_t largest_bits(const float* x, std::int64_t n) {
  std::int32_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t magnitude = magnitude_bits(x[i]);
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

QUANTMAP_INLINE std::int64_t not_finite(const float* x, std::int64_t n) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += magnitude_bits(x[i]) >= kInfinityBits ? 1 : 0;
  return count;
}

}  // namespace

QUANTMAP_SIMD void count_ggml(const float* x, const float* y, std::int64_t n, std::int32_t block,
                              QuantCounts& counts) {
  for (std::int64_t i = 0; i < n; i += block) {
    const std::int32_t before = largest_bits(x + i, block);
    if (before >= kInfinityBits) {
      counts.nonfinite += not_finite(x + i, block);
      continue;
    }
    const std::int32_t after = largest_bits(y + i, block);
    if (after >= kInfinityBits) counts.saturated += not_finite(y + i, block);
    if (block == 1 || after > 0) continue;
    ++(before == 0 ? counts.zero_groups : counts.underflow_blocks);
  }
}

void round_ggml(const GgmlType& type, const float* x, std::int64_t n, float* out, QuantCounts& counts) {
  std::byte bytes[kChunk * kMostBytes];
  float values[kChunk];
  for (std::int64_t i = 0; i < n; i += kChunk) {
    const std::int64_t count = std::min(kChunk, n - i);
    encode_ggml(type, x + i, count, bytes);
    decode_ggml(type, bytes, count, values);
    count_ggml(x + i, values, count, type.block, counts);
    std::copy_n(values, count, out + i);
  }
}

}  // namespace quantmap
