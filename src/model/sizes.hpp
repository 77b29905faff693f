// What a scheme takes in memory, from shapes alone: bits per weight and bytes per cached token, scales, zero
// points and padding counted (formats/spec.hpp, storage_bits). Everything not quantized counts as BF16.
#pragma once

#include <cstdint>

#include "checkpoint/config.hpp"
#include "scheme/scheme.hpp"

namespace quantmap {

struct SchemeSize {
  std::int64_t parameters = 0;        // of the model, a tied head once
  std::int64_t quantized_values = 0;  // weights that the scheme quantizes
  double weight_bytes = 0;            // whole model
  double bpw_model = 0;               // bits per parameter of the whole model
  double bpw_quantized = 0;           // bits per quantized weight; 0 where nothing is quantized
  double kv_bytes_per_token = 0;      // scales of whole windows (tensor, channel) left out
};
SchemeSize scheme_size(const ModelConfig& config, const Scheme* scheme);  // null: nothing quantized

}  // namespace quantmap
