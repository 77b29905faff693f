#include "map/quant_config/quant_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "checkpoint/json.hpp"
#include "core/error.hpp"
#include "core/mapped_file.hpp"
#include "map/quant_config/readers.hpp"

namespace quantmap {
namespace {

namespace fs = std::filesystem;

struct Dialect {
  std::string_view method;
  void (*read)(const QuantFields&, QuantConfig&);
  NameRule ignore_rule;
};
constexpr std::array<Dialect, 10> kDialects{{
    {"compressed-tensors", read_compressed_tensors, NameRule::names},
    {"modelopt", read_modelopt, NameRule::glob},
    {"modelopt_fp4", read_modelopt, NameRule::glob},
    {"modelopt_mixed", read_modelopt, NameRule::glob},
    {"gptq", read_gptq, NameRule::substring},
    {"awq", read_awq, NameRule::substring},
    {"fp8", read_fp8, NameRule::substring},
    {"fbgemm_fp8", read_fbgemm_fp8, NameRule::substring},
    {"bitsandbytes", read_bitsandbytes, NameRule::substring},
    {"mxfp4", read_mxfp4, NameRule::substring},
}};

const Dialect* find_dialect(std::string_view method) {
  for (const Dialect& dialect : kDialects)
    if (dialect.method == method) return &dialect;
  return nullptr;
}

std::string known_methods() {
  std::string names;
  for (const Dialect& dialect : kDialects) names.append(names.empty() ? "" : ", ").append(dialect.method);
  return names;
}

// Objects without `quant_method` that their own keys tell.
std::string method_by_keys(const QuantJson& object) {
  if (object.contains("quant_algo") || object.contains("kv_cache_quant_algo")) return "modelopt";
  if (object.contains("config_groups") || object.contains("kv_cache_scheme")) return "compressed-tensors";
  if (object.contains("w_bit") || object.contains("q_group_size")) return "awq";
  if (object.contains("load_in_4bit") || object.contains("load_in_8bit")) return "bitsandbytes";
  if (object.contains("bits") && object.contains("group_size"))
    return object.contains("zero_point") && !object.contains("desc_act") ? "awq" : "gptq";
  if (object.contains("weight_block_size") || object.contains("activation_scheme")) return "fp8";
  return {};
}

void read_object(const QuantJson& object, const std::string& file, const std::string& place,
                 QuantConfig& out) {
  out.file = file;
  if (!object.is_object()) {
    out.warnings.push_back(fmt::format("{} is {}, not an object", place, describe(object)));
    return;
  }
  const QuantFields fields(object, place, out.warnings);
  const std::string by_keys = method_by_keys(object);
  const auto named = fields.string("quant_method");
  out.method = named.value_or(by_keys);
  if (out.method.empty()) {
    out.method = "unknown";
    out.warnings.push_back(fmt::format("{}: no quant_method, and no keys of a method that is known", place));
    return;
  }
  if (!named && place.find("quantization_config") != std::string::npos)
    out.notes.push_back(fmt::format("{} has no quant_method: read as {}, by its keys", place, out.method));
  // Two dialects share a name: a `modelopt` object says `quant_algo`.
  if (named == "compressed-tensors" && object.contains("quant_algo"))
    out.warnings.push_back(
        fmt::format("{}: quant_method is compressed-tensors, and quant_algo is modelopt's", place));
  const Dialect* dialect = find_dialect(out.method);
  if (!dialect) {
    out.warnings.push_back(fmt::format("{}: unknown quant_method {} (known: {})", place,
                                       quantmap::quoted(out.method), known_methods()));
    return;
  }
  out.known = true;
  out.ignore_rule = dialect->ignore_rule;
  dialect->read(fields, out);
  out.ignore = NameMatcher(out.ignore_rule, out.ignored, out.warnings);
}

// The object that names the quantization, and its place; null: none.
std::pair<const QuantJson*, std::string> find_quantization(const QuantJson& document, QuantConfig& out) {
  std::pair<const QuantJson*, std::string> found{nullptr, ""};
  const auto look = [&](const QuantJson& object, const std::string& prefix) {
    for (const char* key : {"quantization_config", "compression_config"}) {
      const auto it = object.find(key);
      if (it == object.end() || it->is_null()) continue;
      if (!found.first)
        found = {&*it, prefix + key};
      else if (*found.first != *it)
        out.warnings.push_back(
            fmt::format("{} and {}{} differ; the first counts", found.second, prefix, key));
    }
  };
  look(document, "");
  const auto text = document.find("text_config");
  if (text != document.end() && text->is_object()) look(*text, "text_config.");
  return found;
}

std::string summary(const QuantConfig& config) {
  const auto format = [](const std::optional<NumberChoice>& choice) {
    return choice ? choice->format + (choice->granularity.empty() ? "" : " " + choice->granularity)
                  : "16 bit";
  };
  std::string text;
  for (const QuantGroup& group : config.groups)
    text +=
        fmt::format("{}{} × {}", text.empty() ? "" : "; ", format(group.weights), format(group.activations));
  return text + ", cache " + (config.kv ? config.kv->format : "16 bit");
}

}  // namespace

const QuantJson* QuantFields::find(const char* key) const {
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

void QuantFields::wrong(const char* key, const char* expected) const {
  warnings_.push_back(
      fmt::format("{}.{} is {}, not {}; it is left out", place_, key, describe(*find(key)), expected));
}

std::optional<std::int64_t> QuantFields::integer(const char* key) const {
  const QuantJson* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_number_integer() &&
      (!value->is_number_unsigned() || value->get<std::uint64_t>() <= std::uint64_t{1} << 62))
    return value->get<std::int64_t>();
  wrong(key, "a whole number");
  return std::nullopt;
}

std::optional<bool> QuantFields::boolean(const char* key) const {
  const QuantJson* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  wrong(key, "true or false");
  return std::nullopt;
}

std::optional<std::string> QuantFields::string(const char* key) const {
  const QuantJson* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  wrong(key, "a string");
  return std::nullopt;
}

std::vector<std::string> QuantFields::strings(const char* key) const {
  const QuantJson* value = find(key);
  if (!value) return {};
  std::vector<std::string> out;
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) {
    wrong(key, "a list of names");
    return {};
  }
  for (const QuantJson& one : *value) {
    if (one.is_string())
      out.push_back(one.get<std::string>());
    else
      warnings_.push_back(
          fmt::format("{}.{} holds {}, not a name; it is left out", place_, key, describe(one)));
  }
  return out;
}

NumberChoice make_choice(const std::string& format, int bits, const std::string& words, Role role,
                         const std::string& source) {
  NumberChoice choice;
  choice.format = format;
  choice.bits = bits;
  choice.source = source;
  try {
    choice.spec = parse_quant_spec(words.empty() ? format : format + ":" + words, role);
  } catch (const Error&) {
    // A format, or a way of sharing scales, that the registry does not have (yet): known by name.
  }
  return choice;
}

QuantConfig read_quant_config(const QuantJson& document, const std::string& file) {
  QuantConfig out;
  out.file = file;
  if (!document.is_object()) {
    out.warnings.push_back(fmt::format("{} is {}, not an object", file, describe(document)));
    return out;
  }
  const auto [object, place] = find_quantization(document, out);
  if (object) {
    read_object(*object, file, place, out);
  } else if (const auto side = document.find("quantization"); side != document.end() && side->is_object()) {
    read_object(*side, file, "quantization", out);
  } else if (!is_model_config(document)) {
    read_object(document, file, "the file", out);
  }
  return out;
}

bool is_model_config(const QuantJson& document) {
  return document.is_object() && (document.contains("model_type") || document.contains("architectures") ||
                                  document.contains("text_config") || document.contains("hidden_size"));
}

QuantConfig read_quant_config_of_folder(const fs::path& folder, const QuantJson& config) {
  QuantConfig out = read_quant_config(config, "config.json");
  for (const char* side : {"hf_quant_config.json", "quantize_config.json"}) {
    std::error_code ignored;
    if (!fs::exists(folder / side, ignored)) continue;
    QuantConfig other;
    try {
      const MappedFile file(folder / side);
      other = read_quant_config(parse_json(file.text(), "bad config", file.name()), side);
    } catch (const Error& error) {
      out.warnings.push_back(error.what());
      continue;
    }
    if (!out.says_anything()) {
      const std::vector<std::string> earlier = std::move(out.warnings);
      out = std::move(other);
      out.warnings.insert(out.warnings.begin(), earlier.begin(), earlier.end());
      continue;
    }
    for (const std::string& warning : other.warnings)
      out.warnings.push_back(fmt::format("{}: {}", side, warning));
    if (summary(out) != summary(other))
      out.warnings.push_back(fmt::format("config.json and {} differ: {}, but {}; config.json counts", side,
                                         summary(out), summary(other)));
    else if (out.ignored != other.ignored)
      out.warnings.push_back(
          fmt::format("config.json and {} differ in what they ignore: {} entries, but {}; config.json counts",
                      side, out.ignored.size(), other.ignored.size()));
  }
  return out;
}

const QuantGroup* group_of(const QuantConfig& config, const MapModule& module, const std::string& name) {
  if (config.ignore.matches(name)) return nullptr;
  if (config.experts_only && module.part != Part::experts) return nullptr;
  for (const QuantGroup& group : config.groups) {
    const bool named = group.matcher.matches(name, "");
    // The head is a Linear that most tools leave alone unless it is named.
    if (module.part == Part::lm_head && !config.head_by_default && !named) continue;
    if (group.targets.empty() || named || group.matcher.matches(name)) return &group;
  }
  return nullptr;
}

StoredLinear stored_by(const QuantConfig& config, const MapModule& module, const std::string& name) {
  StoredLinear stored;
  const QuantGroup* group = group_of(config, module, name);
  if (!group) return stored;
  if (group->weights) stored.weight = group->weights->spec;
  if (group->activations) stored.activation = group->activations->spec;
  stored.index_per_input = group->index_per_input;
  return stored;
}

WeightChoice choice_of(const QuantConfig& config) {
  const bool numbers = config.ignore.tells_numbers_apart() ||
                       std::any_of(config.groups.begin(), config.groups.end(), [](const QuantGroup& group) {
                         return group.matcher.tells_numbers_apart();
                       });
  return {
      [&config](const MapModule& module, const std::string& name) { return stored_by(config, module, name); },
      numbers};
}

std::string uncounted_format(const QuantConfig& config) {
  for (const QuantGroup& group : config.groups)
    if (group.weights && !group.weights->spec) return group.weights->format;
  if (config.kv && !config.kv->spec) return config.kv->format;
  return {};
}

}  // namespace quantmap
