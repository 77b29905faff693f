// A resolved ModelConfig as JSON text and back, every field: a capture of any container can rebuild it.
#pragma once

#include <string>

#include "checkpoint/config.hpp"

namespace quantmap {

std::string write_config_json(const ModelConfig& config);
// Throws Error (input) naming `source` where a field is missing, of another type or out of range.
ModelConfig parse_config_json(const std::string& text, const std::string& source);

}  // namespace quantmap
