// Model families as facts, for sizes: what config.json leaves out, and which modules a layer has
// (transformers 5.24: the configuration classes' defaults and the modeling files). A family is a row of a
// table.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "map/model_map.hpp"

namespace quantmap {

// The map of a model from its configuration. A multimodal one counts by its `text_config`, and a note names
// the parts that are not counted; so does a multi-token-prediction layer. Throws Error (input) naming
// `source`, the key, what is expected and what was found; an unknown family is refused by name.
ModelMap map_from_config(const nlohmann::json& config, const std::string& source);

// The text model inside a multimodal configuration, or the configuration itself.
const nlohmann::json& text_config(const nlohmann::json& config);

// Whether map_from_config knows the family that this configuration names.
bool is_known_family(const nlohmann::json& config);

}  // namespace quantmap
