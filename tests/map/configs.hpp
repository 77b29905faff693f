// The configurations of ../shared/data/configs, and what tests ask of them.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/json.hpp"
#include "core/mapped_file.hpp"
#include "support/paths.hpp"

namespace quantmap::testing {

inline std::filesystem::path configs_dir() { return shared_dir() / "data/configs"; }

inline nlohmann::json read_json_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_json(file.text(), "bad config", file.name());
}
inline nlohmann::json read_config_file(const std::string& name) {
  return read_json_file(configs_dir() / name);
}

}  // namespace quantmap::testing
