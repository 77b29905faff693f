// ggml's own MXFP4 and NVFP4. Not the formats `mxfp4` and `nvfp4`: the scale of MXFP4 goes through log2f,
// NVFP4 has no tensor scale and rounds its block scales half up, and elements take the first of the nearest
// levels, which is toward zero at ties and never -0.
#include <cmath>

#include "formats/ggml_encoders.hpp"

namespace quantmap::ggml {
namespace {

void encode_halves(const float* x, int half, float d, std::uint8_t* qs) {
  for (int j = 0; j < half; ++j)
    qs[j] = static_cast<std::uint8_t>(nearest_fp4_level(x[j], d) | nearest_fp4_level(x[j + half], d) << 4);
}

}  // namespace

int nearest_fp4_level(float x, float d) {
  int best = 0;
  float least = std::fabs(kFp4Levels[0] * d - x);
  for (int i = 1; i < 16; ++i) {
    const float error = std::fabs(kFp4Levels[i] * d - x);
    if (error < least) least = error, best = i;
  }
  return best;
}

// amax / 6 to UE4M3: one more bit of the mantissa decides, and from 248 on all is 448 (code 7E).
std::uint8_t ue4m3_from_amax(float amax) {
  const float value = amax / 6;
  if (!(value > 0)) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(value < 448 ? value : 448.0F);
  const int exponent = static_cast<int>(bits >> 23) - 127 + 7;
  if (exponent <= 0) {
    const auto mantissa = static_cast<int>(std::floor(value * 512 + 0.5F));
    return static_cast<std::uint8_t>(mantissa < 7 ? mantissa : 7);
  }
  // The carry of the mantissa moves into the exponent by itself.
  const int code = exponent * 8 + static_cast<int>(bits >> 20 & 7U) + static_cast<int>(bits >> 19 & 1U);
  return static_cast<std::uint8_t>(code < 15 * 8 ? code : 0x7E);
}

void encode_block(const float* x, BlockMxfp4& block) {
  const float amax = std::fabs(signed_maximum(x, 32));
  const float exponent = amax > 0 ? std::floor(std::log2(amax)) - 2 + 127 : 0.0F;
  block.e = static_cast<std::uint8_t>(exponent > 0 ? exponent : 0.0F);
  encode_halves(x, 16, half_e8m0(block.e), block.qs);
}

void encode_block(const float* x, BlockNvfp4& block) {
  for (int s = 0; s < 4; ++s) {
    const float* part = x + 16 * s;
    bool finite = true;
    for (int i = 0; i < 16; ++i) finite = finite && std::isfinite(part[i]);
    block.d[s] = finite ? ue4m3_from_amax(std::fabs(signed_maximum(part, 16))) : 0xFF;
    const float zeros[16] = {};
    encode_halves(finite ? part : zeros, 8, finite ? half_ue4m3(block.d[s]) : 0.0F, block.qs + 8 * s);
  }
}

}  // namespace quantmap::ggml
