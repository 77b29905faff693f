// KIVI (Liu et al. 2024, arXiv 2402.02750; jy-yuan/KIVI quant/new_pack.py): a cache of few bits, keys with a
// scale for each channel over groups of tokens, values with one for each token over groups of channels
// (formats.md, section 7). s = (max - min) / (2^b - 1), code = RNE(clamp((x - min) / s, 0, 2^b - 1)), value =
// code * s + min; the range need not contain 0. What is kept in FP16 is rounded first and quantizes then
// (D8). A group of equal values has s = 1 (the original divides by zero).
#pragma once

#include <cstdint>
#include <vector>

#include "formats/quantize.hpp"

namespace quantmap {

enum class KiviSide : std::uint8_t { keys, values };

struct KiviOptions {
  KiviSide side = KiviSide::keys;
  std::int32_t bits = 2;             // 1..8
  std::int32_t group = 32;           // tokens (keys) or channels (values); the last group may be short
  ScaleType scale = ScaleType::f16;  // of s and min: f16 as the original, or f32
};

// One head: [tokens][channels], row-major.
struct KiviEncoded {
  KiviOptions options;
  std::int64_t tokens = 0, channels = 0;
  std::vector<std::uint8_t> codes;    // [tokens][channels]
  std::vector<float> scales, minima;  // keys: [token group][channel]; values: [token][channel group]
  // zero_groups: groups of equal values. A group with NaN or Inf has a NaN scale and decodes to NaN.
  QuantCounts counts;
};
KiviEncoded encode_kivi(const KiviOptions& options, std::int64_t tokens, std::int64_t channels,
                        const float* x);
void decode_kivi(const KiviEncoded& encoded, float* out);

}  // namespace quantmap
