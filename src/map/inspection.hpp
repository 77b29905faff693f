// `inspect`: the three choices of a checkpoint, what stays as it was, and every contradiction between what
// the configuration says and what the files hold.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "map/contents.hpp"
#include "map/model_map.hpp"
#include "map/quant_config/quant_config.hpp"

namespace quantmap {

// Modules of one kind: names that differ in numbers only, `model.layers.N.self_attn.q_proj`.
struct ModuleKind {
  std::string name;
  std::int64_t modules = 0;
  std::string format;  // as stored (`BF16`), where there are files
};

struct StorageSummary {
  std::string storage, format;
  std::int64_t modules = 0, parameters = 0, bytes = 0;
};

struct Inspection {
  std::string model_type, name;
  std::optional<NumberChoice> weights, activations, kv;  // `mixed` where rules differ; none: 16 bits
  std::vector<QuantGroup> rules;                         // as the configuration orders them
  NameRule ignore_rule = NameRule::names;
  std::vector<std::string> ignored;
  std::vector<ModuleKind>
      high_precision;  // matrices that stay; by the files, else by the configuration and the family
  std::vector<StorageSummary> storage;  // of the files
  std::optional<std::int64_t> parameters;
  std::optional<double> bpw_model;
  std::vector<std::string> warnings, notes;
};

// `contents` and `map` may be null.
Inspection inspect(const nlohmann::json& config, const QuantConfig& quantization, const Contents* contents,
                   const ModelMap* map);

// Where the files hold something else than the configuration says; one line each, with a count and an
// example.
std::vector<std::string> contradictions(const nlohmann::json& config, const QuantConfig& quantization,
                                        const Contents& contents);

}  // namespace quantmap
