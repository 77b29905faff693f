#include "formats/run_scale.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/bf16.hpp"
#include "formats/fp16.hpp"

namespace quantmap {
namespace {

constexpr float kLeastPerHeadScale = 1e-6F;  // vLLM int8/fp8_per_token_head

void set_nan(RunScale& run) { run.scale = run.inverse = std::numeric_limits<float>::quiet_NaN(); }

void set_scale(const QuantSpec& spec, float computed, bool empty, RunScale& run) {
  if (multiplies_by_inverse(spec)) computed = std::max(computed, kLeastPerHeadScale);
  run.scale = stored_scale(spec.scale, computed);
  if (std::isinf(run.scale)) {  // beyond the scale's type: 0 * Inf is all that could be decoded
    set_nan(run);
    return;
  }
  // A scale that underflows as it is stored leaves nothing to divide by (D8).
  run.zero_group = empty || run.scale == 0;
  if (run.scale == 0) run.scale = 1;
  run.inverse = 1.0F / run.scale;
}

}  // namespace

bool multiplies_by_inverse(const QuantSpec& spec) { return spec.per_head && !spec.asymmetric; }

float stored_scale(ScaleType type, float scale) {
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

RunScale integer_scale(const QuantSpec& spec, const Extent& extent) {
  const std::int32_t levels = 1 << spec.format->bits;
  RunScale run;
  if (spec.asymmetric) {
    run.lowest = 0;
    run.highest = static_cast<float>(levels - 1);
    if (extent.nonfinite) {
      set_nan(run);
      return run;
    }
    const float width = extent.max - extent.min;
    set_scale(spec, width / run.highest, width == 0, run);
    if (run.zero_group || std::isnan(run.scale)) return run;
    const float zero = std::nearbyint(-extent.min / run.scale);
    const float clamped = std::clamp(zero, 0.0F, run.highest);
    run.zero_point = static_cast<std::int32_t>(clamped);
    run.lowest -= clamped;
    run.highest -= clamped;
    return run;
  }
  const bool narrow = spec.range == IntegerRange::narrow;
  run.highest = static_cast<float>((levels >> 1) - 1);
  run.lowest = narrow ? -run.highest : -run.highest - 1;
  if (spec.source == ScaleSource::unit) return run;
  if (extent.nonfinite) {
    set_nan(run);
    return run;
  }
  const float amax = std::max(extent.max, -extent.min);
  const float steps = narrow ? run.highest : static_cast<float>(levels - 1) / 2;
  set_scale(spec, amax / steps, amax == 0, run);
  return run;
}

RunScale minifloat_scale(const QuantSpec& spec, const Extent& extent) {
  RunScale run;
  run.highest = spec.format->max;
  run.lowest = -run.highest;
  if (spec.source == ScaleSource::unit) return run;
  if (extent.nonfinite) {
    set_nan(run);
    return run;
  }
  const float amax = std::max(extent.max, -extent.min);
  set_scale(spec, amax / spec.format->max, amax == 0, run);
  return run;
}

RunScale run_scale(const QuantSpec& spec, const Extent& extent) {
  return spec.format->kind == FormatKind::integer ? integer_scale(spec, extent)
                                                  : minifloat_scale(spec, extent);
}

}  // namespace quantmap
