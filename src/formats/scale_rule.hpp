// The arithmetic behind run_scale.hpp, on plain values: the same source for host and device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "formats/bf16.hpp"
#include "formats/fp16.hpp"
#include "formats/run_scale.hpp"

namespace quantmap {

// What a scale depends on, of a QuantSpec.
struct ScaleRule {
  bool integer = false;
  std::int32_t bits = 0;  // integers
  float max = 0;          // small floats
  bool asymmetric = false, narrow = false;
  bool unit = false;      // no scale
  bool multiply = false;  // the per-token-head rule: multiplies_by_inverse()
  ScaleType type = ScaleType::f32;
};
ScaleRule scale_rule(const QuantSpec& spec);

QUANTMAP_HD inline float stored_as(ScaleType type, float scale) {
  switch (type) {
    case ScaleType::f32:
      return scale;
    case ScaleType::f16:
      return float_from_fp16(fp16_from_float(scale));
    case ScaleType::bf16:
      return round_to_bf16(scale);
  }
  return scale;
}

QUANTMAP_HD inline void set_scale(const ScaleRule& rule, float computed, bool empty, RunScale& run) {
  constexpr float kLeastPerHeadScale = 1e-6F;  // vLLM int8/fp8_per_token_head
  if (rule.multiply) computed = std::max(computed, kLeastPerHeadScale);
  run.scale = stored_as(rule.type, computed);
  if (std::isinf(run.scale)) {  // beyond the scale's type: 0 * Inf is all that could be decoded
    run.scale = run.inverse = std::numeric_limits<float>::quiet_NaN();
    return;
  }
  // A scale that underflows as it is stored leaves nothing to divide by (D8).
  run.zero_group = empty || run.scale == 0;
  if (run.scale == 0) run.scale = 1;
  run.inverse = 1.0F / run.scale;
}

QUANTMAP_HD inline RunScale run_scale(const ScaleRule& rule, const Extent& extent) {
  const std::int32_t levels = 1 << rule.bits;
  RunScale run;
  if (rule.integer) {
    run.highest = static_cast<float>(rule.asymmetric ? levels - 1 : (levels >> 1) - 1);
    run.lowest = rule.asymmetric ? 0 : rule.narrow ? -run.highest : -run.highest - 1;
  } else {
    run.highest = rule.max;
    run.lowest = -run.highest;
  }
  if (rule.unit && !rule.asymmetric) return run;
  if (extent.nonfinite) {
    run.scale = run.inverse = std::numeric_limits<float>::quiet_NaN();
    return run;
  }
  const float amax = std::max(extent.max, -extent.min);
  if (!rule.integer) {
    set_scale(rule, amax / rule.max, amax == 0, run);
  } else if (!rule.asymmetric) {
    const float steps = rule.narrow ? run.highest : static_cast<float>(levels - 1) / 2;
    set_scale(rule, amax / steps, amax == 0, run);
  } else {
    const float width = extent.max - extent.min;
    set_scale(rule, width / run.highest, width == 0, run);
    if (run.zero_group || std::isnan(run.scale)) return run;
    const float zero = std::nearbyint(-extent.min / run.scale);
    const float clamped = std::clamp(zero, 0.0F, run.highest);
    run.zero_point = static_cast<std::int32_t>(clamped);
    run.lowest -= clamped;
    run.highest -= clamped;
  }
  return run;
}

}  // namespace quantmap
