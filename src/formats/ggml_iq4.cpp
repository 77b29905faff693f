// IQ4_NL and IQ4_XS: 16 levels that are no grid, the scale of 32 values by a search (formats.md, section 6).
#include <cmath>

#include "formats/fp16.hpp"
#include "formats/ggml_encoders.hpp"

namespace quantmap::ggml {
namespace {

constexpr int kBlock = 32;
constexpr float kTiny = 1e-15F;  // below it a block is all zeros

// Ties go to the upper level.
int nearest_level(float value) {
  int index = 0;
  for (const float middle : kIq4Middles) index += value >= middle ? 1 : 0;
  return index;
}

struct Fit {
  float products = 0, squares = 0;  // sums of w*T*x and w*T*T, w = x*x
  Fit(const float* x, float inverse) {
    for (int i = 0; i < kBlock; ++i) {
      const float level = kIq4Levels[nearest_level(inverse * x[i])];
      const float weight = x[i] * x[i];
      products += weight * level * x[i];
      squares += weight * level * level;
    }
  }
};

float search_scale(const float* x) {
  const float largest = signed_maximum(x, kBlock);
  if (std::fabs(largest) < kTiny) return 0;
  const float start = -largest / kIq4Levels[0];
  const Fit first(x, 1 / start);
  float scale = first.products / first.squares;
  float best = scale * first.products;
  for (int t = -7; t <= 7; ++t) {
    const Fit fit(x, (static_cast<float>(t) + kIq4Levels[0]) / largest);
    if (fit.squares > 0 && fit.products * fit.products > best * fit.squares) {
      scale = fit.products / fit.squares;
      best = scale * fit.products;
    }
  }
  return scale;
}

void encode_halves(const float* x, float inverse, std::uint8_t* qs) {
  for (int j = 0; j < 16; ++j) {
    qs[j] =
        static_cast<std::uint8_t>(nearest_level(inverse * x[j]) | nearest_level(inverse * x[j + 16]) << 4);
  }
}

}  // namespace

void encode_block(const float* x, BlockIq4Nl& block) {
  const float scale = search_scale(x);
  block.d = fp16_from_float(scale);
  encode_halves(x, inverse_or_zero(scale), block.qs);
}

void encode_block(const float* x, BlockIq4Xs& block) {
  constexpr int kParts = kSuper / kBlock;
  float scales[kParts];
  for (int part = 0; part < kParts; ++part) scales[part] = search_scale(x + kBlock * part);
  const float d = -signed_maximum(scales, kParts) / 32;
  const float inverse = inverse_or_zero(d);
  block = {};
  block.d = fp16_from_float(d);
  for (int part = 0; part < kParts; ++part) {
    const int l = clamped(nearest_int(inverse * scales[part]), -32, 31);
    encode_halves(x + kBlock * part, inverse_or_zero(d * static_cast<float>(l)), block.qs + 16 * part);
    const int stored = l + 32;
    block.scales_l[part / 2] |= static_cast<std::uint8_t>((stored & 15) << (4 * (part % 2)));
    block.scales_h = static_cast<std::uint16_t>(block.scales_h | (stored >> 4) << (2 * part));
  }
}

}  // namespace quantmap::ggml
