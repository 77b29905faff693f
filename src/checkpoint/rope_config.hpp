// The rotary embedding of a configuration, resolved as transformers 5.24 does (modeling_rope_utils.py:
// convert_rope_params_to_dict, standardize_rope_params, _compute_yarn_parameters).
#pragma once

#include "checkpoint/config.hpp"
#include "checkpoint/json_fields.hpp"

namespace quantmap {

// `max_position`: the model's max_position_embeddings, the default of the original length.
RopeConfig parse_rope(const nlohmann::json& config, const std::string& source, std::int64_t max_position);

// YaRN's factor on cos and sin where none is given: 0.1 * mscale * ln(factor) + 1, or 1 for a factor up to 1.
double yarn_mscale(double factor, double mscale = 1.0);

}  // namespace quantmap
