// IQ4_NL and IQ4_XS, fast: the search of ggml_iq4.cpp for 16 blocks of 32 side by side.
#include <cmath>
#include <utility>

#include "formats/fp16.hpp"
#include "formats/ggml_blocks.hpp"
#include "formats/ggml_encode.hpp"
#include "formats/ggml_encoders.hpp"
#include "formats/ggml_kernels.hpp"
#include "formats/ggml_lanes.hpp"

namespace quantmap::ggml {
namespace {

constexpr int kBlock = 32;
constexpr float kTiny = 1e-15F;

template <std::size_t... kIndex>
QUANTMAP_INLINE float nearest_level(float value, std::index_sequence<kIndex...>) {
  float level = kIq4Levels[0];
  ((level += value >= kIq4Middles[kIndex] ? kIq4Levels[kIndex + 1] - kIq4Levels[kIndex] : 0.0F), ...);
  return level;
}
// Sums of whole numbers: exact.
QUANTMAP_INLINE float nearest_level(float value) {
  return nearest_level(value, std::make_index_sequence<15>());
}

QUANTMAP_INLINE void search(const Columns<kBlock>& x, Lane& scale) {
  Lane largest, best = {};
  signed_maxima(x, largest);
  scale = {};
  for (int t = -8; t <= 7; ++t) {
    const bool first = t == -8;
    Lane inverse, products = {}, squares = {};
    for (int k = 0; k < kLanes; ++k) {
      const float start = 1 / (-largest.at[k] / kIq4Levels[0]);
      inverse.at[k] = first ? start : (static_cast<float>(t) + kIq4Levels[0]) / largest.at[k];
    }
    for (int i = 0; i < kBlock; ++i) {
      for (int k = 0; k < kLanes; ++k) {
        const float value = x.at[i][k];
        const float level = nearest_level(inverse.at[k] * value);
        const float weight = value * value;
        products.at[k] += weight * level * value;
        squares.at[k] += weight * level * level;
      }
    }
    for (int k = 0; k < kLanes; ++k) {
      const float p = products.at[k];
      const float s = squares.at[k];
      const float quotient = p / s;
      const bool take = first | ((s > 0) & (p * p > best.at[k] * s));
      scale.at[k] = take ? quotient : scale.at[k];
      best.at[k] = take ? quotient * p : best.at[k];
    }
  }
  for (int k = 0; k < kLanes; ++k) scale.at[k] = std::fabs(largest.at[k]) < kTiny ? 0.0F : scale.at[k];
}

void by_reference(std::int32_t id, const float* x, std::int64_t n, float* y) {
  const GgmlType& type = *find_ggml_type(id);
  std::byte bytes[1024];
  encode_ggml(type, x, n, bytes);
  decode_ggml(type, bytes, n, y);
}

}  // namespace

QUANTMAP_SIMD void round_iq4_nl(const float* x, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; i += kBlock * kLanes) {
    const auto left = static_cast<int>((n - i) / kBlock);
    const int count = left < kLanes ? left : kLanes;
    Columns<kBlock> columns;
    Lane scale;
    load_columns<kBlock>(x + i, count, columns);
    search(columns, scale);
    for (int b = 0; b < count; ++b) {
      const float* from = x + i + kBlock * b;
      float* to = y + i + kBlock * b;
      if (!is_ordinary(from, kBlock)) {
        by_reference(20, from, kBlock, to);
        continue;
      }
      const float d = round_to_fp16(scale.at[b]);
      const float inverse = inverse_or_zero(scale.at[b]);
      for (int j = 0; j < kBlock; ++j) to[j] = d * nearest_level(inverse * from[j]);
    }
  }
}

QUANTMAP_SIMD void round_iq4_xs(const float* x, std::int64_t n, float* y) {
  constexpr int kParts = kSuper / kBlock;
  for (std::int64_t i = 0; i < n; i += 2 * kSuper) {
    const int supers = n - i > kSuper ? 2 : 1;
    Columns<kBlock> columns;
    Lane scale;
    load_columns<kBlock>(x + i, kParts * supers, columns);
    search(columns, scale);
    for (int s = 0; s < supers; ++s) {
      const float* from = x + i + kSuper * s;
      float* to = y + i + kSuper * s;
      if (!is_ordinary(from, kSuper)) {
        by_reference(23, from, kSuper, to);
        continue;
      }
      const float* scales = scale.at + kParts * s;
      const float d = -signed_maximum(scales, kParts) / 32;
      const float inverse = inverse_or_zero(d);
      const float stored = round_to_fp16(d);
      for (int part = 0; part < kParts; ++part) {
        const auto l = static_cast<float>(clamped(nearest_int(inverse * scales[part]), -32, 31));
        const float its_inverse = inverse_or_zero(d * l);
        const float its_scale = stored * l;
        for (int j = kBlock * part; j < kBlock * (part + 1); ++j)
          to[j] = its_scale * nearest_level(its_inverse * from[j]);
      }
    }
  }
}

}  // namespace quantmap::ggml
