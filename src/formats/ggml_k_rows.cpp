// K-quants, fast: the searches of ggml_k_quants.cpp for 16 sub-blocks side by side, then the values that the
// file would decode to. What a search cannot take side by side goes by the reference (is_ordinary, and a
// sub-block whose scale has the code 0, where the sign of a zero is that of the search's own codes).
#include <cmath>
#include <cstring>

#include "formats/ggml_blocks.hpp"
#include "formats/ggml_encode.hpp"
#include "formats/ggml_encoders.hpp"
#include "formats/ggml_k_scales.hpp"
#include "formats/ggml_kernels.hpp"
#include "formats/ggml_lanes.hpp"

namespace quantmap::ggml {
namespace {

constexpr float kTiny = 1e-15F;

void by_reference(std::int32_t id, const float* x, float* y) {
  const GgmlType& type = *find_ggml_type(id);
  std::byte bytes[256];
  encode_ggml(type, x, kSuper, bytes);
  decode_ggml(type, bytes, kSuper, y);
}

// QKX2, see qkx2() in ggml_k_quants.cpp.
template <int kValues, int kHighest, int kSteps, bool kAbsolute>
QUANTMAP_INLINE void search_minima(const Columns<kValues>& x, float first, bool mean_weight, Lane& scale,
                                   Lane& min) {
  constexpr auto kTop = static_cast<float>(kHighest);
  Columns<kValues> weight;
  Lane mean = {};
  if (mean_weight) {
    for (int i = 0; i < kValues; ++i) {
      for (int k = 0; k < kLanes; ++k) mean.at[k] += x.at[i][k] * x.at[i][k];
    }
    for (int k = 0; k < kLanes; ++k) mean.at[k] = std::sqrt(mean.at[k] / static_cast<float>(kValues));
  }
  for (int i = 0; i < kValues; ++i) {
    for (int k = 0; k < kLanes; ++k) weight.at[i][k] = mean.at[k] + std::fabs(x.at[i][k]);
  }
  Lane low, high, sum_w = {}, sum_x = {};
  for (int k = 0; k < kLanes; ++k) low.at[k] = high.at[k] = x.at[0][k];
  for (int i = 0; i < kValues; ++i) {
    for (int k = 0; k < kLanes; ++k) {
      const float value = x.at[i][k];
      const float least = low.at[k];
      const float most = high.at[k];
      low.at[k] = value < least ? value : least;
      high.at[k] = value > most ? value : most;
      sum_w.at[k] += weight.at[i][k];
      sum_x.at[k] += weight.at[i][k] * value;
    }
  }
  Lane range, best = {}, flat_low;
  for (int k = 0; k < kLanes; ++k) {
    low.at[k] = low.at[k] > 0 ? 0.0F : low.at[k];
    const float own = high.at[k] - low.at[k];
    range.at[k] = own > 0 ? own : 1.0F;  // flat: whatever is found is thrown away
    flat_low.at[k] = low.at[k];
    scale.at[k] = 1 / (kTop / range.at[k]);
  }
  Lane flat;
  for (int k = 0; k < kLanes; ++k) flat.at[k] = high.at[k] == low.at[k] ? 1.0F : 0.0F;
  for (int i = 0; i < kValues; ++i) {
    for (int k = 0; k < kLanes; ++k) {
      const float inverse = kTop / range.at[k];
      const float l = bounded(nearest_float(inverse * (x.at[i][k] - low.at[k])), 0, kTop);
      const float d = scale.at[k] * l + low.at[k] - x.at[i][k];
      best.at[k] += weight.at[i][k] * (kAbsolute ? std::fabs(d) : d * d);
    }
  }
  Columns<kValues> trial;
  for (int step = 0; step <= kSteps; ++step) {
    Lane inverse, sum_l = {}, sum_ll = {}, sum_xl = {};
    for (int k = 0; k < kLanes; ++k)
      inverse.at[k] = (first + 0.1F * static_cast<float>(step) + kTop) / range.at[k];
    for (int i = 0; i < kValues; ++i) {
      for (int k = 0; k < kLanes; ++k) {
        const float l = bounded(nearest_float(inverse.at[k] * (x.at[i][k] - low.at[k])), 0, kTop);
        const float w = weight.at[i][k];
        trial.at[i][k] = l;
        sum_l.at[k] += w * l;
        sum_ll.at[k] += w * l * l;
        sum_xl.at[k] += w * l * x.at[i][k];
      }
    }
    Lane its_scale, its_low, determinant, error = {};
    for (int k = 0; k < kLanes; ++k) {
      determinant.at[k] = sum_w.at[k] * sum_ll.at[k] - sum_l.at[k] * sum_l.at[k];
      const float s = (sum_w.at[k] * sum_xl.at[k] - sum_x.at[k] * sum_l.at[k]) / determinant.at[k];
      const float m = (sum_ll.at[k] * sum_x.at[k] - sum_l.at[k] * sum_xl.at[k]) / determinant.at[k];
      const float without = sum_xl.at[k] / sum_ll.at[k];
      its_scale.at[k] = m > 0 ? without : s;
      its_low.at[k] = m > 0 ? 0.0F : m;
    }
    for (int i = 0; i < kValues; ++i) {
      for (int k = 0; k < kLanes; ++k) {
        const float d = its_scale.at[k] * trial.at[i][k] + its_low.at[k] - x.at[i][k];
        error.at[k] += weight.at[i][k] * (kAbsolute ? std::fabs(d) : d * d);
      }
    }
    for (int k = 0; k < kLanes; ++k) {
      // Without a branch: & instead of &&.
      const bool take = (determinant.at[k] > 0) & (error.at[k] < best.at[k]);
      best.at[k] = take ? error.at[k] : best.at[k];
      scale.at[k] = take ? its_scale.at[k] : scale.at[k];
      low.at[k] = take ? its_low.at[k] : low.at[k];
      const float own = high.at[k] - low.at[k];  // the next trials divide what the best minimum leaves
      range.at[k] = flat.at[k] != 0 ? 1.0F : own;
    }
  }
  for (int k = 0; k < kLanes; ++k) {
    const bool is_flat = flat.at[k] != 0;
    scale.at[k] = is_flat ? 0.0F : scale.at[k];
    min.at[k] = -(is_flat ? flat_low.at[k] : low.at[k]);
  }
}

// QX with half 32, see qx().
QUANTMAP_INLINE void search_scales(const Columns<16>& x, Lane& scale) {
  constexpr float kHalf = 32;
  Lane largest, best = {};
  signed_maxima(x, largest);
  scale = {};
  for (int t = -10; t <= 9; ++t) {
    if (t == 0) continue;
    const bool first = t == -10;
    const float numerator = -(first ? kHalf : kHalf + 0.1F * static_cast<float>(t));
    Lane trial, products = {}, squares = {};
    for (int k = 0; k < kLanes; ++k) trial.at[k] = numerator / largest.at[k];
    for (int i = 0; i < 16; ++i) {
      for (int k = 0; k < kLanes; ++k) {
        const float value = x.at[i][k];
        const float l = bounded(nearest_float(trial.at[k] * value), -kHalf, kHalf - 1);
        const float weight = value * value;
        products.at[k] += weight * value * l;
        squares.at[k] += weight * l * l;
      }
    }
    for (int k = 0; k < kLanes; ++k) {
      const float p = products.at[k];
      const float s = squares.at[k];
      const float quotient = p / s;
      const bool take = first | ((s > 0) & (p * p > best.at[k] * s));
      const float found = s != 0 ? quotient : 0.0F;
      scale.at[k] = take ? found : scale.at[k];
      best.at[k] = take ? found * p : best.at[k];
    }
  }
  for (int k = 0; k < kLanes; ++k) scale.at[k] = std::fabs(largest.at[k]) < kTiny ? 0.0F : scale.at[k];
}

// Q3, see q3(), for the sub-blocks of two super-blocks, whose chains of dependent steps overlap. A sub-block
// that is done stays as it is in the sweeps of the others.
QUANTMAP_INLINE void search_q3(const Columns<16>* x, Lane* scale) {
  constexpr float kHalf = 4;
  Lane largest[2], products[2] = {}, squares[2] = {};
  Columns<16> code[2];
  for (int g = 0; g < 2; ++g) {
    Lane trial;
    signed_maxima(x[g], largest[g]);
    for (int k = 0; k < kLanes; ++k) trial.at[k] = -kHalf / largest[g].at[k];
    for (int i = 0; i < 16; ++i) {
      for (int k = 0; k < kLanes; ++k) {
        const float value = x[g].at[i][k];
        const float l = bounded(nearest_float(trial.at[k] * value), -kHalf, kHalf - 1);
        const float weight = value * value;
        code[g].at[i][k] = l;
        products[g].at[k] += weight * value * l;
        squares[g].at[k] += weight * l * l;
      }
    }
  }
  for (int sweep = 0; sweep < 5; ++sweep) {
    alignas(64) std::int32_t changed[kLanes] = {};
    for (int i = 0; i < 16; ++i) {
      for (int g = 0; g < 2; ++g) {
        for (int k = 0; k < kLanes; ++k) {
          const float value = x[g].at[i][k];
          const float weight = value * value;
          const float l = code[g].at[i][k];
          const float p = products[g].at[k];
          const float s = squares[g].at[k];
          const float a = p - weight * value * l;
          const float b = s - weight * l * l;
          const auto other = bounded(static_cast<float>(nearest_int(value * b / a)), -kHalf, kHalf - 1);
          const float more_a = a + weight * value * other;
          const float more_b = b + weight * other * other;
          const bool take = (a > 0) & (other != l) & (more_b > 0) & (more_a * more_a * s > p * p * more_b);
          code[g].at[i][k] = chosen(take, other, l);
          products[g].at[k] = chosen(take, more_a, p);
          squares[g].at[k] = chosen(take, more_b, s);
          changed[k] |= take ? 1 : 0;
        }
      }
    }
    std::int32_t any = 0;
    for (const std::int32_t one : changed) any |= one;
    if (any == 0) break;
  }
  for (int g = 0; g < 2; ++g) {
    for (int k = 0; k < kLanes; ++k) {
      const float quotient = products[g].at[k] / squares[g].at[k];
      const bool none = (std::fabs(largest[g].at[k]) < kTiny) | !(squares[g].at[k] > 0);
      scale[g].at[k] = none ? 0.0F : quotient;
    }
  }
}

// A super-block's values from its coded scales: recode and decode.
template <int kValues, int kHighest>
QUANTMAP_INLINE void finish_minima(const CodedScales& coded, const float* x, float* y) {
  for (int part = 0; part < kSuper / kValues; ++part) {
    const float step = coded.step(part);
    const float min = coded.offset(part);
    const float* from = x + kValues * part;
    float* to = y + kValues * part;
    if (step == 0) {  // whatever the codes
      for (int i = 0; i < kValues; ++i) to[i] = 0.0F - min;
      continue;
    }
    for (int i = 0; i < kValues; ++i)
      to[i] = step * bounded(nearest_float((from[i] + min) / step), 0, kHighest) - min;
  }
}

template <int kLowest, int kHighest>
QUANTMAP_INLINE bool finish_signed(const CodedScales& coded, const float* x, float* y) {
  for (int part = 0; part < 16; ++part) {
    const float step = coded.step(part);
    if (step == 0) return false;
    for (int i = 16 * part; i < 16 * (part + 1); ++i) {
      // + 0: a code is a whole number without the sign of zero.
      y[i] = step * (bounded(nearest_float(x[i] / step), kLowest, kHighest) + 0.0F);
    }
  }
  return true;
}

// Scales that FP16 holds.
QUANTMAP_INLINE bool takes_minima(const CodedScales& coded) {
  return std::isfinite(coded.d) && std::isfinite(coded.dmin);
}

template <int kHighest, int kSteps>
QUANTMAP_INLINE void round_pairs(std::int32_t id, float first, const float* x, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; i += 2 * kSuper) {
    const int supers = n - i > kSuper ? 2 : 1;
    Columns<32> columns;
    Lane scale, min;
    load_columns<32>(x + i, 8 * supers, columns);
    search_minima<32, kHighest, kSteps, false>(columns, first, true, scale, min);
    for (int s = 0; s < supers; ++s) {
      const float* from = x + i + kSuper * s;
      float* to = y + i + kSuper * s;
      const CodedScales coded = code_scales_and_minima(scale.at + 8 * s, min.at + 8 * s, 8, 63);
      if (is_ordinary(from, kSuper) && takes_minima(coded)) {
        finish_minima<32, kHighest>(coded, from, to);
      } else {
        by_reference(id, from, to);
      }
    }
  }
}

}  // namespace

QUANTMAP_SIMD void round_q4_k(const float* x, std::int64_t n, float* y) {
  round_pairs<15, 20>(12, -1, x, n, y);
}

QUANTMAP_SIMD void round_q5_k(const float* x, std::int64_t n, float* y) {
  round_pairs<31, 15>(13, -0.5F, x, n, y);
}

QUANTMAP_SIMD void round_q2_k(const float* x, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; i += kSuper) {
    Columns<16> columns;
    Lane scale, min;
    load_columns<16>(x + i, kLanes, columns);
    search_minima<16, 3, 15, true>(columns, -0.5F, false, scale, min);
    const CodedScales coded = code_scales_and_minima(scale.at, min.at, 16, 15);
    if (is_ordinary(x + i, kSuper) && takes_minima(coded)) {
      finish_minima<16, 3>(coded, x + i, y + i);
    } else {
      by_reference(10, x + i, y + i);
    }
  }
}

QUANTMAP_SIMD void round_q3_k(const float* x, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; i += 2 * kSuper) {
    const int supers = n - i > kSuper ? 2 : 1;
    Columns<16> columns[2];
    Lane scale[2];
    for (int s = 0; s < 2; ++s) load_columns<16>(x + i + (s < supers ? kSuper * s : 0), kLanes, columns[s]);
    search_q3(columns, scale);
    for (int s = 0; s < supers; ++s) {
      const float* from = x + i + kSuper * s;
      float* to = y + i + kSuper * s;
      bool done = is_ordinary(from, kSuper);
      if (done) {
        const CodedScales coded = code_signed_scales(scale[s].at, 32, 31);
        done = !coded.empty && std::isfinite(coded.d) && finish_signed<-4, 3>(coded, from, to);
      }
      if (!done) by_reference(11, from, to);
    }
  }
}

QUANTMAP_SIMD void round_q6_k(const float* x, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; i += kSuper) {
    bool done = is_ordinary(x + i, kSuper);
    if (done) {
      Columns<16> columns;
      Lane scale;
      load_columns<16>(x + i, kLanes, columns);
      search_scales(columns, scale);
      const CodedScales coded = code_signed_scales(scale.at, 128, 127);
      done = !coded.empty && std::isfinite(coded.d) && finish_signed<-32, 31>(coded, x + i, y + i);
    }
    if (!done) by_reference(14, x + i, y + i);
  }
}

}  // namespace quantmap::ggml
