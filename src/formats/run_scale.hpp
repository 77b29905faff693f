// How a scale follows from the values that share it: integers (formats.md, section 2) and FP8 (section 7).
// The fast quantizers and the reference ones call this alike; golden vectors hold it.
#pragma once

#include <cstdint>

#include "formats/spec.hpp"

namespace quantmap {

// The extremes of the values that share a scale.
struct Extent {
  float min = 0;  // of the values and 0
  float max = 0;
  bool nonfinite = false;  // a NaN or Inf among them: the scale is NaN
};

// code = clamp(round(x / scale) [or x * inverse]); value = code * scale. For integers the codes here have the
// zero point subtracted, so that a symmetric and an asymmetric grid are the same thing.
struct RunScale {
  float scale = 1;
  float inverse = 1;              // fl(1 / scale), used under the per-head rule
  float lowest = 0, highest = 0;  // integers: the codes' range
  std::int32_t zero_point = 0;    // unsigned, as stored: code + zero_point is in 0..2^b-1
  bool zero_group = false;        // nothing to scale by: scale 1, codes 0
};

RunScale run_scale(const QuantSpec& spec, const Extent& extent);  // scale_rule.hpp

// Whether x is multiplied by fl(1/s) (the KV cache's per-token-head rule, section 7) or divided by s.
bool multiplies_by_inverse(const QuantSpec& spec);

// As stored: rounded to the spec's scale type.
float stored_scale(ScaleType type, float scale);

}  // namespace quantmap
