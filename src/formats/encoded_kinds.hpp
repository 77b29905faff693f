// What the reference quantizers of the kinds (encoded_*.cpp) share; of use to encode() and decode() only.
// They fill a freshly sized Encoded, or write its values; x is row-major.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "formats/element.hpp"
#include "formats/encoded.hpp"
#include "formats/run_scale.hpp"

namespace quantmap {

void encode_cast(Encoded& e, const float* x);
void decode_cast(const Encoded& e, float* out);
void encode_scaled(Encoded& e, const float* x, const TensorRange* range);
void decode_scaled(const Encoded& e, float* out);
void encode_mx(Encoded& e, const float* x);
void decode_mx(const Encoded& e, float* out);
void encode_nvfp4(Encoded& e, const float* x, const TensorRange& range);
void decode_nvfp4(const Encoded& e, float* out);
void encode_lookup(Encoded& e, const float* x);
void decode_lookup(const Encoded& e, float* out);
void encode_gguf(Encoded& e, const float* x);

// The codec of a small float or of MXINT8.
struct FloatCodec {
  std::uint32_t (*encode)(float);
  float (*decode)(std::uint32_t);
  float max;
  bool has_nan;
  float (*round)(float);  // a magnitude up to 2 * max, onto the grid continued without end
};
template <class Float>
FloatCodec codec_of() {
  return {[](float x) { return Float::encode_saturating(x); },
          [](std::uint32_t c) { return Float::decode(c); }, Float::kMax,
          std::isnan(Float::decode(Float::encode_saturating(NAN))),
          [](float x) { return Float::round_magnitude(x); }};
}
inline FloatCodec codec_of(const Format& format) {
  return with_float(format.element, [](auto type) { return codec_of<decltype(type)>(); });
}

// Round first, then compare: whether y ends beyond the largest number.
inline bool saturates(const FloatCodec& codec, float y) {
  return std::isfinite(y) ? codec.round(std::min(std::abs(y), 2 * codec.max)) > codec.max : !std::isnan(y);
}

inline void widen(Extent& extent, float x) {
  if (!std::isfinite(x)) {
    extent.nonfinite = true;
    return;
  }
  extent.min = std::min(extent.min, x);
  extent.max = std::max(extent.max, x);
}

// Calls body(first index, values in the block) for each block of each row.
template <class Body>
void each_block(const Encoded& e, Body body) {
  for (std::int64_t row = 0; row < e.rows; ++row) {
    for (std::int64_t col = 0; col < e.cols; col += e.spec.format->block) {
      body(row * e.cols + col, std::min<std::int64_t>(e.spec.format->block, e.cols - col));
    }
  }
}

inline Extent block_extent(const float* x, std::int64_t count) {
  Extent extent;
  for (std::int64_t i = 0; i < count; ++i) widen(extent, x[i]);
  return extent;
}

inline std::int64_t nonfinite_in(const float* x, std::int64_t count) {
  return std::count_if(x, x + count, [](float value) { return !std::isfinite(value); });
}

}  // namespace quantmap
