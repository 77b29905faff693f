// Integers, small floats and the casts: see row_kernels.hpp.
#include <cstddef>

#include "core/simd.hpp"
#include "formats/bf16.hpp"
#include "formats/element.hpp"
#include "formats/fp16.hpp"
#include "formats/row_kernels.hpp"

namespace quantmap {
namespace {

// Round to nearest even by adding and subtracting 1.5 * 2^23, whose ulp is 1; for |y| < 2^22.
constexpr float kRoundShift = 0x1.8p23F;

// One value on the integer grid [lowest, highest]; adds 1 to `clamped` where rounding ends beyond it. NaN
// stays NaN. Clamping to one step outside first keeps the rounding in its domain and still tells the two
// cases apart.
QUANTMAP_INLINE float integer_code(float y, float lowest, float highest, std::int32_t& clamped) {
  const float below = lowest - 1;
  const float above = highest + 1;
  float near = y < below ? below : y;
  near = near > above ? above : near;
  const float rounded = (near + kRoundShift) - kRoundShift;
  clamped += ((rounded < lowest) | (rounded > highest)) ? 1 : 0;
  const float code = rounded < lowest ? lowest : rounded;
  return code > highest ? highest : code;
}

// One value on a minifloat's grid. A NaN becomes the largest number and is not counted: its scale is NaN.
template <class Float>
QUANTMAP_INLINE float minifloat_code(float y, std::int32_t& clamped) {
  const auto bits = std::bit_cast<std::uint32_t>(y);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  constexpr auto kCap = std::bit_cast<std::uint32_t>(2 * Float::kMax);
  const std::uint32_t capped = magnitude < kCap ? magnitude : kCap;
  const float rounded = Float::round_magnitude(std::bit_cast<float>(capped));
  const bool beyond = rounded > Float::kMax;
  clamped += (beyond & (magnitude <= 0x7F800000U)) ? 1 : 0;
  const float held = beyond ? Float::kMax : rounded;
  const float code = std::bit_cast<float>(std::bit_cast<std::uint32_t>(held) | (bits & 0x80000000U));
  if constexpr (!Float::kNegativeZero) return code + 0.0F;
  return code;
}

template <class Code>
QUANTMAP_INLINE std::int64_t each_run(const float* x, std::int64_t n, std::int64_t run, const RunScale* runs,
                                      ScaledRow how, float* out, Code code_of) {
  std::int64_t total = 0;
  for (std::int64_t begin = 0; begin < n; begin += run, ++runs) {
    const std::int64_t end = begin + run < n ? begin + run : n;
    const float scale = runs->scale;
    const float inverse = runs->inverse;
    const float lowest = runs->lowest;
    const float highest = runs->highest;
    const float post = how.decode ? scale : 1.0F;
    std::int32_t clamped = 0;
    if (how.multiply) {
      QUANTMAP_ELEMENTWISE
      for (std::int64_t i = begin; i < end; ++i) {
        out[i] = code_of(x[i] * inverse, lowest, highest, clamped) * post;
      }
    } else {
      QUANTMAP_ELEMENTWISE
      for (std::int64_t i = begin; i < end; ++i) {
        out[i] = code_of(x[i] / scale, lowest, highest, clamped) * post;
      }
    }
    total += clamped;
  }
  return total;
}

struct IntegerCode {
  QUANTMAP_INLINE float operator()(float y, float lowest, float highest, std::int32_t& clamped) const {
    return integer_code(y, lowest, highest, clamped);
  }
};
template <class Float>
struct MinifloatCode {
  QUANTMAP_INLINE float operator()(float y, float, float, std::int32_t& clamped) const {
    return minifloat_code<Float>(y, clamped);
  }
};

}  // namespace

QUANTMAP_SIMD std::int64_t round_runs(Element element, const float* x, std::int64_t n, std::int64_t run,
                                      const RunScale* runs, ScaledRow how, float* out) {
  if (element == Element::integer) return each_run(x, n, run, runs, how, out, IntegerCode{});
  return with_float(element, [&](auto type) QUANTMAP_INLINE_LAMBDA {
    return each_run(x, n, run, runs, how, out, MinifloatCode<decltype(type)>{});
  });
}

QUANTMAP_SIMD std::int64_t round_columns(Element element, const float* x, std::int64_t n, const float* scale,
                                         const float* lowest, const float* highest, float* out) {
  std::int32_t clamped = 0;
  if (element == Element::integer) {
    QUANTMAP_ELEMENTWISE
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = integer_code(x[i] / scale[i], lowest[i], highest[i], clamped) * scale[i];
    return clamped;
  }
  with_float(element, [&](auto type) QUANTMAP_INLINE_LAMBDA {
    QUANTMAP_ELEMENTWISE
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = minifloat_code<decltype(type)>(x[i] / scale[i], clamped) * scale[i];
  });
  return clamped;
}

QUANTMAP_SIMD std::int64_t round_bf16(const float* x, std::int64_t n, float* out) {
  std::int32_t overflows = 0;
  QUANTMAP_ELEMENTWISE
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = x[i];
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
    overflows += ((magnitude < 0x7F800000U) & (magnitude >= 0x7F7F8000U)) ? 1 : 0;
    out[i] = round_to_bf16(value);
  }
  return overflows;
}

QUANTMAP_SIMD std::int64_t round_fp16(const float* x, std::int64_t n, float* out) {
  std::int32_t overflows = 0;
  QUANTMAP_ELEMENTWISE
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = x[i];
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
    overflows += ((magnitude < 0x7F800000U) & (magnitude >= 0x477FF000U)) ? 1 : 0;
    out[i] = round_to_fp16(value);
  }
  return overflows;
}

QUANTMAP_SIMD std::int64_t pack_bf16(const float* x, std::int64_t n, std::uint16_t* out) {
  std::int32_t outside = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = x[i];
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
    outside += ((magnitude - 1U < 0x007FFFFFU) | (magnitude >= 0x7F7F8000U)) ? 1 : 0;
    out[i] = bf16_from_float(value);
  }
  return outside;
}

}  // namespace quantmap
