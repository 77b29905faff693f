#include "map/inspection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "map/families.hpp"
#include "map/map_from_contents.hpp"
#include "map/name_of_choices.hpp"

namespace quantmap {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Numbers that are a whole part of the path become N.
std::string kind_of(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    const bool starts = i == 0 || name[i - 1] == '.';
    std::size_t end = i;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (starts && end > i && (end == name.size() || name[end] == '.')) {
      out += 'N';
      i = end;
    } else {
      out += name[i++];
    }
  }
  return out;
}

class Kinds {
 public:
  void add(std::string_view name, const std::string& format, std::int64_t count = 1) {
    ModuleKind& kind = kinds_[{kind_of(name), format}];
    kind.modules += count;
  }
  std::vector<ModuleKind> take() {
    std::vector<ModuleKind> out;
    for (auto& [key, kind] : kinds_) out.push_back({key.first, kind.modules, key.second});
    return out;
  }

 private:
  std::map<std::pair<std::string, std::string>, ModuleKind> kinds_;
};

// A kind of contradiction: how often, and the first module that shows it.
struct Sighting {
  std::int64_t count = 0;
  std::string example;
  void see(const std::string& name) {
    if (count++ == 0) example = name;
  }
  std::string text() const {
    return fmt::format("{} module{} ({}{})", count, count == 1 ? "" : "s", example, count > 1 ? ", …" : "");
  }
};

MapModule module_of(const ModuleContents& contents) {
  MapModule module;
  module.name = contents.name;
  module.part = part_of(contents.name);
  module.linear = true;
  return module;
}

// What quantizers may touch: two-dimensional matrices of decoder layers and the head, routers aside.
bool may_be_quantized(const ModuleContents& module) {
  if (module.storage != Storage::plain) return true;
  const Part part = part_of(module.name);
  return module.dimensions == 2 && part != Part::embeddings && part != Part::norms && part != Part::router &&
         part != Part::other;
}

void compare_weights(const QuantConfig& quantization, const Contents& contents,
                     std::vector<std::string>& out) {
  Sighting left_plain, quantized_though;
  std::map<std::pair<std::string, std::string>, Sighting> formats, groups;
  std::int64_t stored_quantized = 0;
  for (const auto& [name, module] : contents.modules) {
    if (!may_be_quantized(module)) continue;
    const QuantGroup* group = group_of(quantization, module_of(module), name);
    const bool claimed = group && group->weights, stored = module.storage != Storage::plain;
    stored_quantized += stored;
    if (claimed && !stored) left_plain.see(fmt::format("{}: {}", name, module.format));
    if (!claimed && stored) quantized_though.see(fmt::format("{}: {}", name, module.format));
    if (!claimed || !stored) continue;
    if (module.format != group->weights->format) formats[{group->weights->format, module.format}].see(name);
    const std::int64_t said = group->weights->group_size;
    if (said > 0 && module.group_size > 0 && said != module.group_size && module.granularity == "group")
      groups[{std::to_string(said), std::to_string(module.group_size)}].see(name);
  }
  const bool says = !quantization.groups.empty();
  if (says && stored_quantized == 0) {
    out.push_back(fmt::format("the configuration says {}, and the files hold no quantized weight",
                              name_of(quantization)));
    return;
  }
  if (left_plain.count > 0)
    out.push_back("the configuration quantizes, and the files hold in full precision: " + left_plain.text());
  if (quantized_though.count > 0)
    out.push_back(fmt::format("{}, and the files hold quantized: {}",
                              quantization.says_anything()
                                  ? "the configuration leaves alone"
                                  : "no configuration says anything of a quantization",
                              quantized_though.text()));
  for (const auto& [pair, seen] : formats)
    out.push_back(fmt::format("the configuration says {}, and the files hold {}: {}", pair.first, pair.second,
                              seen.text()));
  for (const auto& [pair, seen] : groups)
    out.push_back(fmt::format("the configuration says groups of {}, and the files hold groups of {}: {}",
                              pair.first, pair.second, seen.text()));
}

void compare_scales(const QuantConfig& quantization, const Contents& contents,
                    std::vector<std::string>& out) {
  const bool is_static = std::any_of(
      quantization.groups.begin(), quantization.groups.end(),
      [](const QuantGroup& group) { return group.activations && group.activations->dynamic == "false"; });
  const bool scales = std::any_of(contents.modules.begin(), contents.modules.end(),
                                  [](const auto& one) { return one.second.input_scale; });
  if (is_static && !scales)
    out.emplace_back("the configuration says static activation scales, and the files hold no input_scale");
  if (quantization.kv && contents.kv_scales.empty() && quantization.kv->dynamic != "true")
    out.push_back(fmt::format(
        "the cache is said to be {}, and the files hold no scale for keys or values: 1.0 by default",
        short_format(quantization.kv->format)));
  if (!quantization.kv && !contents.kv_scales.empty())
    out.push_back(
        fmt::format("the files hold {} scales of keys and values ({}, …), and the configuration says nothing "
                    "of the cache",
                    contents.kv_scales.size(), contents.kv_scales.front()));
}

// A key of the text model, or of the whole; null: neither has it.
const nlohmann::json* find_key(const nlohmann::json& config, const char* key) {
  const nlohmann::json& text = text_config(config);
  if (const auto found = text.find(key); found != text.end()) return &*found;
  const auto found = config.find(key);
  return found != config.end() ? &*found : nullptr;
}

void compare_head(const nlohmann::json& config, const Contents& contents, std::vector<std::string>& out) {
  if (!config.is_object()) return;
  bool head = false, embeddings = false;
  for (const auto& [name, module] : contents.modules) {
    head = head || part_of(name) == Part::lm_head;
    embeddings = embeddings || part_of(name) == Part::embeddings;
  }
  const nlohmann::json* tied = find_key(config, "tie_word_embeddings");
  const bool said = tied && tied->is_boolean();
  if (embeddings && !head && !(said && tied->get<bool>()))
    out.push_back(
        fmt::format("there is no lm_head: the embeddings serve as it, though tie_word_embeddings is {}",
                    said ? "false" : "not said"));
}

// What the files alone say, where no configuration does.
void choices_by_files(const Contents& contents, Inspection& out) {
  const StorageSummary *largest = nullptr, *largest_of_all = nullptr;
  for (const StorageSummary& one : out.storage) {
    if (!largest_of_all || one.bytes > largest_of_all->bytes) largest_of_all = &one;
    if (one.storage != "plain" && (!largest || one.bytes > largest->bytes)) largest = &one;
  }
  if (contents.gguf) {
    out.name = "GGUF";
    if (!contents.file_type.empty())
      out.name.append(" ").append(contents.file_type);
    else if (largest_of_all)
      out.name.append(" ").append(largest_of_all->format);
    out.notes.emplace_back(
        "activations and the KV cache are run-time choices of the program that loads a GGUF file");
  }
  if (!largest) {
    if (!contents.gguf) out.name = "BF16";
    return;
  }
  NumberChoice weights;
  weights.format = largest->format;
  weights.source =
      contents.gguf && !contents.file_type.empty() ? "general.file_type and the tensors" : "the tensors";
  for (const auto& [name, module] : contents.modules)
    if (module.format == largest->format && module.storage != Storage::plain) {
      weights.bits = module.bits;
      weights.granularity = module.granularity;
      weights.group_size = module.group_size;
      break;
    }
  if (!contents.gguf)
    out.name = fmt::format("{} (by the files)", name_of(QuantGroup{{}, {}, weights, {}, false}));
  out.weights = std::move(weights);
}

std::optional<NumberChoice> choice_of_rules(const std::vector<QuantGroup>& rules,
                                            std::optional<NumberChoice> QuantGroup::*member) {
  std::optional<NumberChoice> first;
  bool any = false;
  for (const QuantGroup& rule : rules) {
    const std::optional<NumberChoice>& choice = rule.*member;
    if (!any) {
      first = choice;
      any = true;
      continue;
    }
    const bool same =
        choice.has_value() == first.has_value() &&
        (!choice || (choice->format == first->format && choice->granularity == first->granularity &&
                     choice->group_size == first->group_size && choice->dynamic == first->dynamic));
    if (same) continue;
    NumberChoice mixed;
    mixed.format = "mixed";
    mixed.source = "the rules";
    return mixed;
  }
  return first;
}

}  // namespace

std::vector<std::string> contradictions(const nlohmann::json& config, const QuantConfig& quantization,
                                        const Contents& contents) {
  std::vector<std::string> out;
  if (contents.gguf) return out;
  if (quantization.known || !quantization.says_anything()) {
    compare_weights(quantization, contents, out);
    compare_scales(quantization, contents, out);
  }
  compare_head(config, contents, out);
  return out;
}

Inspection inspect(const nlohmann::json& config, const QuantConfig& quantization, const Contents* contents,
                   const ModelMap* map) {
  Inspection out;
  if (config.is_object()) {
    const nlohmann::json* type =
        config.contains("model_type") ? &config["model_type"] : find_key(config, "model_type");
    if (type && type->is_string()) out.model_type = *type;
  }
  if (out.model_type.empty() && map) out.model_type = map->model_type;
  out.name = name_of(quantization);
  out.rules = quantization.groups;
  out.ignored = quantization.ignored;
  out.ignore_rule = quantization.ignore_rule;
  out.kv = quantization.kv;
  out.weights = choice_of_rules(out.rules, &QuantGroup::weights);
  out.activations = choice_of_rules(out.rules, &QuantGroup::activations);
  out.warnings = quantization.warnings;
  out.notes = quantization.notes;
  if (contents) {
    out.warnings.insert(out.warnings.end(), contents->warnings.begin(), contents->warnings.end());
    std::map<std::pair<std::string, std::string>, StorageSummary> storage;
    Kinds kinds;
    for (const auto& [name, module] : contents->modules) {
      StorageSummary& one = storage[{std::string(storage_name(module.storage)), module.format}];
      ++one.modules;
      one.parameters += module.parameters;
      one.bytes += module.weight_bytes;
      if (module.storage == Storage::plain && module.matrix) kinds.add(name, module.format);
    }
    for (auto& [key, one] : storage) {
      one.storage = key.first;
      one.format = key.second;
      out.storage.push_back(one);
    }
    out.high_precision = kinds.take();
    out.parameters = contents->parameters;
    if (contents->parameters > 0)
      out.bpw_model = 8.0 * static_cast<double>(contents->bytes) / static_cast<double>(contents->parameters);
    if (!quantization.says_anything()) choices_by_files(*contents, out);
    const std::vector<std::string> more = contradictions(config, quantization, *contents);
    out.warnings.insert(out.warnings.end(), more.begin(), more.end());
    return out;
  }
  if (!map) return out;
  out.parameters = map->parameters();
  const bool counted = quantization.known && uncounted_format(quantization).empty();
  const WeightChoice choice = quantization.known ? choice_of(quantization) : unquantized_choice();
  if (counted || !quantization.says_anything()) out.bpw_model = weight_bytes(*map, choice).bpw_model();
  if (!quantization.known) return out;
  Kinds kinds;
  for (const MapModule& module : map->modules) {
    if (module.rows == 1) continue;
    const QuantGroup* group = module.linear ? group_of(quantization, module, module.module_name(0)) : nullptr;
    if (!group || !group->weights) kinds.add(module.module_name(0), "", module.count);
  }
  out.high_precision = kinds.take();
  return out;
}

}  // namespace quantmap
