// MODEL as `size`, `inspect` and the first look take it: a directory, a .gguf file, or a configuration's JSON
// file.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "map/contents.hpp"
#include "map/model_map.hpp"
#include "map/quant_config/quant_config.hpp"

namespace quantmap {

struct ModelSource {
  std::string path;
  nlohmann::json config;              // config.json; null for a GGUF file or a bare quantization's file
  QuantConfig quantization;           // what the configuration says; nothing for GGUF
  std::optional<Contents> contents;   // what the files hold, where there are any
  std::optional<ModelMap> map;        // none: a family whose sizes are not known, or no geometry at all
  std::string why_no_map;             // one line, where there is none
  std::vector<std::string> warnings;  // about the two above not fitting together, and of reading them
};

// `always_files`: the headers of a directory's tensor files are read even where the configuration says all
// that a map needs. Throws Error (input) where there is no model, or a file of it cannot be used.
ModelSource open_model_source(const std::string& path, bool always_files);

}  // namespace quantmap
