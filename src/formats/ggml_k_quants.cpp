// Q2_K to Q6_K: super-blocks of 256 whose sub-blocks of 16 or 32 have scales (Q2_K, Q4_K, Q5_K: and minima)
// that are codes themselves. Each sub-block's scale is searched for alone, then coded, and the codes of the
// values are chosen with what the file holds. The helpers' names are those of formats.md, section 6.
#include "formats/ggml_k_scales.hpp"

#include <cmath>
#include <cstring>

#include "formats/fp16.hpp"
#include "formats/ggml_encoders.hpp"

namespace quantmap::ggml {
namespace {

constexpr float kTiny = 1e-15F;  // a sub-block whose largest magnitude is below it has scale 0

// QX, weights x*x: a scale for codes in [-half, half - 1]. `codes` are without offset; 0 where the scale is
// 0, which is code -half (ggml writes the bytes so).
float qx(const float* x, int n, int half, int* codes) {
  const float largest = signed_maximum(x, n);
  if (std::fabs(largest) < kTiny) {
    for (int i = 0; i < n; ++i) codes[i] = -half;
    return 0;
  }
  float scale = 0;
  float best = 0;
  for (int k = -10; k <= 9; ++k) {
    if (k == 0) continue;
    const bool first = k == -10;
    const float trial =
        -(first ? static_cast<float>(half) : static_cast<float>(half) + 0.1F * static_cast<float>(k)) /
        largest;
    float products = 0;
    float squares = 0;
    for (int i = 0; i < n; ++i) {
      const auto l = static_cast<float>(clamped(nearest_int(trial * x[i]), -half, half - 1));
      const float weight = x[i] * x[i];
      products += weight * x[i] * l;
      squares += weight * l * l;
    }
    if (first) {
      scale = squares != 0 ? products / squares : 0.0F;
      best = scale * products;
    } else if (squares > 0 && products * products > best * squares) {
      scale = products / squares;
      best = scale * products;
    } else {
      continue;
    }
    for (int i = 0; i < n; ++i) codes[i] = clamped(nearest_int(trial * x[i]), -half, half - 1);
  }
  return scale;
}

// Q3: codes in [-4, 3], improved one at a time.
float q3(const float* x, int n, int* codes) {
  constexpr int kHalf = 4;
  const float largest = signed_maximum(x, n);
  if (std::fabs(largest) < kTiny) {
    for (int i = 0; i < n; ++i) codes[i] = -kHalf;
    return 0;
  }
  const float trial = -static_cast<float>(kHalf) / largest;
  float products = 0;
  float squares = 0;
  for (int i = 0; i < n; ++i) {
    codes[i] = clamped(nearest_int(trial * x[i]), -kHalf, kHalf - 1);
    const auto l = static_cast<float>(codes[i]);
    const float weight = x[i] * x[i];
    products += weight * x[i] * l;
    squares += weight * l * l;
  }
  for (int sweep = 0; sweep < 5; ++sweep) {
    bool changed = false;
    for (int i = 0; i < n; ++i) {
      const float weight = x[i] * x[i];
      const auto l = static_cast<float>(codes[i]);
      float a = products - weight * x[i] * l;
      if (!(a > 0)) continue;
      float b = squares - weight * l * l;
      const int other = clamped(nearest_int(x[i] * b / a), -kHalf, kHalf - 1);
      if (other == codes[i]) continue;
      const auto o = static_cast<float>(other);
      a += weight * x[i] * o;
      b += weight * o * o;
      if (b > 0 && a * a * squares > products * products * b) {
        codes[i] = other;
        products = a;
        squares = b;
        changed = true;
      }
    }
    if (!changed) break;
  }
  return squares > 0 ? products / squares : 0.0F;
}

struct QkX2 {
  int highest;
  float first;  // r0
  int steps;
  bool absolute;  // error by |d| instead of d*d
};

// QKX2: a scale and a minimum <= 0 for codes in [0, highest]; returns the scale, `min` gets -minimum >= 0.
float qkx2(const float* x, int n, const QkX2& rule, const float* weights, int* codes, float& min) {
  float low = x[0];
  float high = x[0];
  float sum_w = weights[0];
  float sum_x = sum_w * x[0];
  for (int i = 1; i < n; ++i) {
    if (x[i] < low) low = x[i];
    if (x[i] > high) high = x[i];
    sum_w += weights[i];
    sum_x += weights[i] * x[i];
  }
  if (low > 0) low = 0;
  if (high == low) {
    for (int i = 0; i < n; ++i) codes[i] = 0;
    min = -low;
    return 0;
  }
  const auto top = static_cast<float>(rule.highest);
  const auto error_of = [&](const int* l, float scale, float offset) {
    float error = 0;
    for (int i = 0; i < n; ++i) {
      const float d = scale * static_cast<float>(l[i]) + offset - x[i];
      error += weights[i] * (rule.absolute ? std::fabs(d) : d * d);
    }
    return error;
  };
  float inverse = top / (high - low);
  float scale = 1 / inverse;
  for (int i = 0; i < n; ++i) codes[i] = clamped(nearest_int(inverse * (x[i] - low)), 0, rule.highest);
  float best = error_of(codes, scale, low);
  int trial[32];
  for (int k = 0; k <= rule.steps; ++k) {
    inverse = (rule.first + 0.1F * static_cast<float>(k) + top) / (high - low);
    float sum_l = 0;
    float sum_ll = 0;
    float sum_xl = 0;
    for (int i = 0; i < n; ++i) {
      trial[i] = clamped(nearest_int(inverse * (x[i] - low)), 0, rule.highest);
      const auto l = static_cast<float>(trial[i]);
      sum_l += weights[i] * l;
      sum_ll += weights[i] * l * l;
      sum_xl += weights[i] * l * x[i];
    }
    const float determinant = sum_w * sum_ll - sum_l * sum_l;
    if (!(determinant > 0)) continue;
    float its_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
    float its_low = (sum_ll * sum_x - sum_l * sum_xl) / determinant;
    if (its_low > 0) {
      its_low = 0;
      its_scale = sum_xl / sum_ll;
    }
    const float error = error_of(trial, its_scale, its_low);
    if (error < best) {
      std::memcpy(codes, trial, static_cast<std::size_t>(n) * sizeof(int));
      best = error;
      scale = its_scale;
      low = its_low;
    }
  }
  min = -low;
  return scale;
}

// The final codes of a sub-block, with the scale and minimum of the file; those of the search where the scale
// is 0.
void recode(const float* x, int n, float scale, float min, int lowest, int highest, int* codes) {
  if (scale == 0) return;
  for (int i = 0; i < n; ++i) codes[i] = clamped(nearest_int((x[i] + min) / scale), lowest, highest);
}

void search_with_minima(const float* x, int n, const QkX2& rule, bool mean_weight, float* scales, float* mins,
                        int* codes) {
  for (int part = 0; part < kSuper / n; ++part) {
    const float* sub = x + n * part;
    float weights[32];
    float mean = 0;
    if (mean_weight) {
      float squares = 0;
      for (int i = 0; i < n; ++i) squares += sub[i] * sub[i];
      mean = std::sqrt(squares / static_cast<float>(n));
    }
    for (int i = 0; i < n; ++i) weights[i] = mean_weight ? mean + std::fabs(sub[i]) : std::fabs(sub[i]);
    scales[part] = qkx2(sub, n, rule, weights, codes + n * part, mins[part]);
  }
}

// Six-bit pairs of scale and minimum, as scale_and_min() of ggml_blocks.cpp reads them.
void pack_pairs(const CodedScales& coded, std::uint8_t* s) {
  std::memset(s, 0, 12);
  for (int j = 0; j < 8; ++j) {
    const int scale = coded.scale[j];
    const int min = coded.min[j];
    if (j < 4) {
      s[j] = static_cast<std::uint8_t>(s[j] | scale);
      s[j + 4] = static_cast<std::uint8_t>(s[j + 4] | min);
    } else {
      s[j + 4] = static_cast<std::uint8_t>((scale & 15) | (min & 15) << 4);
      s[j - 4] = static_cast<std::uint8_t>(s[j - 4] | (scale >> 4) << 6);
      s[j] = static_cast<std::uint8_t>(s[j] | (min >> 4) << 6);
    }
  }
}

// Q4_K and Q5_K up to their packing.
CodedScales encode_pairs(const float* x, const QkX2& rule, int* codes) {
  float scales[8];
  float mins[8];
  search_with_minima(x, 32, rule, true, scales, mins, codes);
  const CodedScales coded = code_scales_and_minima(scales, mins, 8, 63);
  for (int part = 0; part < 8; ++part) {
    recode(x + 32 * part, 32, coded.step(part), coded.offset(part), 0, rule.highest, codes + 32 * part);
  }
  return coded;
}

}  // namespace

CodedScales code_scales_and_minima(const float* scales, const float* mins, int parts, int highest) {
  CodedScales coded;
  float scale = 0;
  float min = 0;
  for (int j = 0; j < parts; ++j) {
    if (scales[j] > scale) scale = scales[j];
    if (mins[j] > min) min = mins[j];
  }
  const auto top = static_cast<float>(highest);
  const float scale_inverse = scale > 0 ? top / scale : 0.0F;
  const float min_inverse = min > 0 ? top / min : 0.0F;
  for (int j = 0; j < parts; ++j) {  // & 255: ggml keeps them in bytes before it clamps
    coded.scale[j] = clamped(nearest_int(scale_inverse * scales[j]) & 255, 0, highest);
    coded.min[j] = clamped(nearest_int(min_inverse * mins[j]) & 255, 0, highest);
  }
  coded.d_bits = fp16_from_float(scale > 0 ? scale / top : 0.0F);
  coded.min_bits = fp16_from_float(min > 0 ? min / top : 0.0F);
  coded.d = float_from_fp16(coded.d_bits);
  coded.dmin = float_from_fp16(coded.min_bits);
  return coded;
}

CodedScales code_signed_scales(const float* scales, int half, int highest) {
  CodedScales coded;
  const float largest = signed_maximum(scales, 16);
  if (largest == 0 || (half == 128 && std::fabs(largest) < kTiny)) {
    coded.empty = true;
    if (half == 32) {
      for (int& scale : coded.scale) scale = -32;
    }
    return coded;
  }
  const float inverse = -static_cast<float>(half) / largest;
  for (int j = 0; j < 16; ++j) coded.scale[j] = clamped(nearest_int(inverse * scales[j]), -half, highest);
  coded.d_bits = fp16_from_float(1 / inverse);
  coded.d = float_from_fp16(coded.d_bits);
  return coded;
}

void encode_block(const float* x, BlockQ2K& block) {
  int codes[kSuper];
  float scales[16];
  float mins[16];
  search_with_minima(x, 16, {3, -0.5F, 15, true}, false, scales, mins, codes);
  const CodedScales coded = code_scales_and_minima(scales, mins, 16, 15);
  for (int part = 0; part < 16; ++part) {
    recode(x + 16 * part, 16, coded.step(part), coded.offset(part), 0, 3, codes + 16 * part);
    block.scales[part] = static_cast<std::uint8_t>(coded.scale[part] | coded.min[part] << 4);
  }
  for (int j = 0; j < 64; ++j) {
    const int* c = codes + 128 * (j / 32) + j % 32;
    block.qs[j] = static_cast<std::uint8_t>(c[0] | c[32] << 2 | c[64] << 4 | c[96] << 6);
  }
  block.d = coded.d_bits;
  block.dmin = coded.min_bits;
}

void encode_block(const float* x, BlockQ3K& block) {
  int codes[kSuper];
  float scales[16];
  for (int part = 0; part < 16; ++part) scales[part] = q3(x + 16 * part, 16, codes + 16 * part);
  const CodedScales coded = code_signed_scales(scales, 32, 31);
  block = {};
  for (int part = 0; part < 16; ++part) {
    recode(x + 16 * part, 16, coded.step(part), 0, -4, 3, codes + 16 * part);
    const int stored = coded.scale[part] + 32;
    std::uint8_t& low = block.scales[part % 8];
    low = static_cast<std::uint8_t>(low | (stored & 15) << (part < 8 ? 0 : 4));
    std::uint8_t& high = block.scales[8 + part % 4];
    high = static_cast<std::uint8_t>(high | (stored >> 4) << (2 * (part / 4)));
  }
  for (int e = 0; e < kSuper; ++e) {
    const int code = codes[e] + 4;
    std::uint8_t& mask = block.hmask[e % 32];
    mask = static_cast<std::uint8_t>(mask | (code >> 2) << (e / 32));
    std::uint8_t& byte = block.qs[32 * (e / 128) + e % 32];
    byte = static_cast<std::uint8_t>(byte | (code & 3) << (2 * (e % 128 / 32)));
  }
  block.d = coded.d_bits;
}

void encode_block(const float* x, BlockQ4K& block) {
  int codes[kSuper];
  const CodedScales coded = encode_pairs(x, {15, -1, 20, false}, codes);
  pack_pairs(coded, block.scales);
  for (int j = 0; j < 128; ++j) {
    const int* c = codes + 64 * (j / 32) + j % 32;
    block.qs[j] = static_cast<std::uint8_t>(c[0] | c[32] << 4);
  }
  block.d = coded.d_bits;
  block.dmin = coded.min_bits;
}

void encode_block(const float* x, BlockQ5K& block) {
  int codes[kSuper];
  const CodedScales coded = encode_pairs(x, {31, -0.5F, 15, false}, codes);
  pack_pairs(coded, block.scales);
  std::memset(block.qh, 0, sizeof block.qh);
  for (int j = 0; j < 128; ++j) {
    const int* c = codes + 64 * (j / 32) + j % 32;
    block.qs[j] = static_cast<std::uint8_t>((c[0] & 15) | (c[32] & 15) << 4);
  }
  for (int e = 0; e < kSuper; ++e) {
    std::uint8_t& high = block.qh[e % 32];
    high = static_cast<std::uint8_t>(high | (codes[e] >> 4) << (e / 32));
  }
  block.d = coded.d_bits;
  block.dmin = coded.min_bits;
}

void encode_block(const float* x, BlockQ6K& block) {
  int codes[kSuper];
  float scales[16];
  for (int part = 0; part < 16; ++part) scales[part] = qx(x + 16 * part, 16, 32, codes + 16 * part);
  const CodedScales coded = code_signed_scales(scales, 128, 127);
  block = {};
  if (coded.empty) return;
  for (int part = 0; part < 16; ++part) {
    recode(x + 16 * part, 16, coded.step(part), 0, -32, 31, codes + 16 * part);
    block.scales[part] = static_cast<std::int8_t>(coded.scale[part]);
  }
  for (int half = 0; half < 2; ++half) {
    for (int l = 0; l < 32; ++l) {
      int c[4];
      for (int k = 0; k < 4; ++k) c[k] = codes[128 * half + 32 * k + l] + 32;
      block.ql[64 * half + l] = static_cast<std::uint8_t>((c[0] & 15) | (c[2] & 15) << 4);
      block.ql[64 * half + 32 + l] = static_cast<std::uint8_t>((c[1] & 15) | (c[3] & 15) << 4);
      block.qh[32 * half + l] =
          static_cast<std::uint8_t>(c[0] >> 4 | (c[1] >> 4) << 2 | (c[2] >> 4) << 4 | (c[3] >> 4) << 6);
    }
  }
  block.d = coded.d_bits;
}

}  // namespace quantmap::ggml
