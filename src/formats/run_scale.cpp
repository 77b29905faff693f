#include "formats/run_scale.hpp"

#include "formats/scale_rule.hpp"

namespace quantmap {

bool multiplies_by_inverse(const QuantSpec& spec) { return spec.per_head && !spec.asymmetric; }

float stored_scale(ScaleType type, float scale) { return stored_as(type, scale); }

ScaleRule scale_rule(const QuantSpec& spec) {
  return {.integer = spec.format->kind == FormatKind::integer,
          .bits = spec.format->bits,
          .max = spec.format->max,
          .asymmetric = spec.asymmetric,
          .narrow = spec.range == IntegerRange::narrow,
          .unit = spec.source == ScaleSource::unit,
          .multiply = multiplies_by_inverse(spec),
          .type = spec.scale};
}

RunScale run_scale(const QuantSpec& spec, const Extent& extent) {
  return run_scale(scale_rule(spec), extent);
}

}  // namespace quantmap
