#include "formats/ggml_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/simd.hpp"
#include "formats/ggml_encode.hpp"
#include "formats/ggml_kernels.hpp"

namespace quantmap {
namespace {

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

namespace {

// Through the bytes: types without a kernel of their own.
void round_by_bytes(const GgmlType& type, const float* x, std::int64_t n, float* y) {
  std::byte bytes[ggml::kGgmlChunk * kMostBytes];
  encode_ggml(type, x, n, bytes);
  decode_ggml(type, bytes, n, y);
}

using Kernel = void (*)(const float*, std::int64_t, float*);
Kernel kernel_of(const GgmlType& type) {
  constexpr struct {
    std::int32_t id;
    Kernel round;
  } kKernels[] = {
      {2, ggml::round_q4_0},     {3, ggml::round_q4_1},     {6, ggml::round_q5_0},
      {7, ggml::round_q5_1},     {8, ggml::round_q8_0},     {10, ggml::round_q2_k},
      {11, ggml::round_q3_k},    {12, ggml::round_q4_k},    {13, ggml::round_q5_k},
      {14, ggml::round_q6_k},    {20, ggml::round_iq4_nl},  {23, ggml::round_iq4_xs},
      {34, ggml::round_ternary}, {35, ggml::round_ternary}, {39, ggml::round_mxfp4},
      {40, ggml::round_nvfp4},   {41, ggml::round_q1_0},    {42, ggml::round_q2_0},
  };
  for (const auto& row : kKernels) {
    if (row.id == type.id) return row.round;
  }
  return nullptr;
}

// What is not finite makes NaN of its block (NVFP4's kernel knows better: of 16 values).
void poison(const GgmlType& type, const float* x, std::int64_t n, float* y) {
  if (type.name == "NVFP4") return;
  for (std::int64_t i = 0; i < n; i += type.block) {
    if (largest_bits(x + i, type.block) >= kInfinityBits)
      std::fill_n(y + i, type.block, std::bit_cast<float>(0x7FC00000U));
  }
}

}  // namespace

void round_ggml(const GgmlType& type, const float* x, std::int64_t n, float* out, QuantCounts& counts) {
  const Kernel kernel = kernel_of(type);
  float beside[ggml::kGgmlChunk];
  for (std::int64_t i = 0; i < n; i += ggml::kGgmlChunk) {
    const std::int64_t count = std::min(ggml::kGgmlChunk, n - i);
    const std::int64_t before = counts.nonfinite;
    float* y = out == x ? beside : out + i;  // counts compare both
    if (kernel) {
      kernel(x + i, count, y);
    } else {
      round_by_bytes(type, x + i, count, y);
    }
    count_ggml(x + i, y, count, type.block, counts);
    if (kernel && counts.nonfinite > before) poison(type, x + i, count, y);
    if (y == beside) std::copy_n(beside, count, out + i);
  }
}

}  // namespace quantmap
