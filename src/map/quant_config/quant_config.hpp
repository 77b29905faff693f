// What a checkpoint's configuration says about its quantization, whatever the dialect: groups of modules with
// the format of their weights and inputs, the KV cache's format, and what is left alone. One small reader for
// each dialect (formats.md, section 8), behind one table; nothing here looks at tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "formats/spec.hpp"
#include "map/name_match.hpp"
#include "map/weight_bytes.hpp"

namespace quantmap {

// One of the three choices, as a configuration names it.
struct NumberChoice {
  std::string format;  // an id of the registry where it has one (`int4`, `nvfp4`), else the dialect's word
  int bits = 0;        // of one code
  std::string
      granularity;  // `tensor`, `channel`, `token`, `group`, `block`, `attn_head`; empty: the format's own
  std::int64_t group_size = 0;  // 0: none
  std::int64_t block_rows = 0, block_cols = 0;
  std::optional<bool> symmetric;
  std::string dynamic;            // `true`, `false`, `local`; empty: not said (weights)
  std::string source;             // `config.json: quantization_config.config_groups.group_0.weights`
  std::optional<QuantSpec> spec;  // none: a format that the registry does not have
};

// Modules that are quantized alike.
struct QuantGroup {
  std::vector<std::string> targets;                  // as written; empty: every Linear of the decoder layers
  NameMatcher matcher;                               // of the targets
  std::optional<NumberChoice> weights, activations;  // none: 16 bits
  bool index_per_input = false;                      // GPTQ's `g_idx`
};

struct QuantConfig {
  std::string method;              // `compressed-tensors`, `modelopt`, `gptq`, …; empty: nothing is said
  std::string file;                // it was read from
  bool known = false;              // false: a method that no reader knows
  std::vector<QuantGroup> groups;  // the first that a module falls under counts
  std::optional<NumberChoice> kv;
  bool kv_per_layer_rules = false;
  NameRule ignore_rule = NameRule::names;
  std::vector<std::string> ignored;  // as written
  NameMatcher ignore;
  bool head_by_default = false;  // the LM head too, unless it is ignored
  bool experts_only = false;     // MXFP4 as gpt-oss has it
  std::vector<std::string> warnings, notes;

  bool says_anything() const { return !method.empty(); }
};

// Reads a document: config.json, hf_quant_config.json, quantize_config.json or a bare quantization_config,
// told apart by their keys; `file` is used in messages. What is not understood is a warning each.
QuantConfig read_quant_config(const nlohmann::json& document, const std::string& file);
// The quantization that a folder's files say together: config.json, and hf_quant_config.json or
// quantize_config.json beside it; where two say different things a warning tells which counts
// (config.json's).
QuantConfig read_quant_config_of_folder(const std::filesystem::path& folder, const nlohmann::json& config);

// Whether a document is a model's configuration rather than only a quantization's.
bool is_model_config(const nlohmann::json& document);

// The group that the module of this name falls under; null: it is left alone.
const QuantGroup* group_of(const QuantConfig& config, const MapModule& module, const std::string& name);
// How it is stored, by the configuration.
StoredLinear stored_by(const QuantConfig& config, const MapModule& module, const std::string& name);
WeightChoice choice_of(const QuantConfig& config);
// A format that has no row in the registry, so that its bytes cannot be counted; empty: all have one.
std::string uncounted_format(const QuantConfig& config);

}  // namespace quantmap
