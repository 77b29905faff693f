// NVIDIA ModelOpt (modelopt/torch/export/quant_utils.py, convert_hf_config.py): one algorithm for all
// modules, or one for each layer named (MIXED_PRECISION); in hf_quant_config.json under `quantization`, in
// config.json under `quantization_config`.
#include <fmt/format.h>

#include <array>

#include "map/quant_config/readers.hpp"

namespace quantmap {
namespace {

struct Algorithm {
  std::string_view name;
  std::string_view weights, weight_words, weight_granularity;
  std::string_view activations, activation_words, activation_granularity, dynamic;  // empty: 16 bits
};
// `static` scales come from calibration; the grammar's word for their class of formats is `tensor:dynamic`.
constexpr std::array<Algorithm, 14> kAlgorithms{{
    {"FP8", "fp8_e4m3", "tensor", "tensor", "fp8_e4m3", "tensor:dynamic", "tensor", "false"},
    {"FP8_PER_CHANNEL_PER_TOKEN", "fp8_e4m3", "channel", "channel", "fp8_e4m3", "token", "token", "true"},
    {"FP8_PB_WO", "fp8_e4m3", "b128x128", "block", "", "", "", ""},
    {"NVFP4", "nvfp4", "", "", "nvfp4", "", "", "local"},
    {"NVFP4_AWQ", "nvfp4", "", "", "nvfp4", "", "", "local"},
    {"NVFP4_SVD", "nvfp4", "", "", "nvfp4", "", "", "local"},
    {"W4A16_NVFP4", "nvfp4", "", "", "", "", "", ""},
    {"W4A8_NVFP4_FP8", "nvfp4", "", "", "fp8_e4m3", "tensor:dynamic", "tensor", "false"},
    {"MXFP8", "mxfp8_e4m3", "", "", "mxfp8_e4m3", "", "", "true"},
    {"W4A16_AWQ", "int4", "g128", "group", "", "", "", ""},
    {"W4A8_AWQ", "int4", "g128", "group", "fp8_e4m3", "tensor:dynamic", "tensor", "false"},
    {"W8A8_SQ_PER_CHANNEL", "int8", "channel", "channel", "int8", "tensor:dynamic", "tensor", "false"},
    {"W8A16", "int8", "channel", "channel", "", "", "", ""},
    {"INT8", "int8", "channel", "channel", "int8", "tensor:dynamic", "tensor", "false"},
}};

const Algorithm* find_algorithm(std::string_view name) {
  for (const Algorithm& algorithm : kAlgorithms)
    if (algorithm.name == name) return &algorithm;
  return nullptr;
}

int bits_of(std::string_view format) {
  return format.find('4') == format.npos || format == "fp8_e4m3" || format == "mxfp8_e4m3" ? 8 : 4;
}

QuantGroup group_of(const Algorithm& algorithm, std::int64_t group_size, const std::string& source) {
  QuantGroup group;
  std::string words(algorithm.weight_words);
  if (algorithm.weight_granularity == "group" && group_size > 0) words = fmt::format("g{}", group_size);
  group.weights =
      make_choice(std::string(algorithm.weights), bits_of(algorithm.weights), words, Role::weight, source);
  group.weights->granularity = algorithm.weight_granularity;
  group.weights->symmetric = true;
  if (algorithm.weights == "nvfp4") group.weights->group_size = 16;
  if (algorithm.weight_granularity == "group") group.weights->group_size = group_size > 0 ? group_size : 128;
  if (algorithm.weight_granularity == "block") group.weights->block_rows = group.weights->block_cols = 128;
  if (algorithm.activations.empty()) return group;
  group.activations = make_choice(std::string(algorithm.activations), bits_of(algorithm.activations),
                                  std::string(algorithm.activation_words), Role::activation, source);
  group.activations->granularity = algorithm.activation_granularity;
  group.activations->symmetric = true;
  group.activations->dynamic = algorithm.dynamic;
  if (algorithm.activations == "nvfp4") group.activations->group_size = 16;
  return group;
}

void read_layers(const QuantFields& fields, QuantConfig& out) {
  const QuantJson* layers = fields.find("quantized_layers");
  if (!layers || !layers->is_object()) {
    fields.warn(fields.place() + ": MIXED_PRECISION without quantized_layers");
    return;
  }
  // One group for each algorithm (and group size), its targets the layers' names.
  std::vector<std::pair<std::string, QuantGroup>> groups;
  for (const auto& [name, object] : layers->items()) {
    const std::string place = fields.place("quantized_layers") + "." + name;
    if (!object.is_object()) {
      fields.warn(place + " is not an object; it is left out");
      continue;
    }
    const QuantFields layer(object, place, out.warnings);
    const std::string algorithm = layer.string("quant_algo").value_or("");
    const std::int64_t size = layer.integer("group_size").value_or(0);
    const Algorithm* known = find_algorithm(algorithm);
    if (!known) {
      layer.warn(fmt::format("{}.quant_algo is \"{}\", which is not known; the layer is left out", place,
                             algorithm));
      continue;
    }
    const std::string key = fmt::format("{} {}", algorithm, size);
    auto found =
        std::find_if(groups.begin(), groups.end(), [&](const auto& one) { return one.first == key; });
    if (found == groups.end())
      found = groups.insert(
          groups.end(),
          {key, group_of(*known, size, fmt::format("{} ({})", fields.place("quantized_layers"), algorithm))});
    found->second.targets.push_back(name);
  }
  for (auto& [key, group] : groups) {
    group.matcher = NameMatcher(NameRule::glob, group.targets, out.warnings);
    out.groups.push_back(std::move(group));
  }
}

// config.json repeats the choice in compressed-tensors' words; do they agree?
void check_config_groups(const QuantFields& fields, const QuantConfig& out) {
  const QuantJson* groups = fields.find("config_groups");
  if (!groups || !groups->is_object() || out.groups.size() != 1 || !out.groups[0].weights) return;
  for (const auto& [name, object] : groups->items()) {
    if (!object.is_object() || !object.contains("weights") || !object["weights"].is_object()) continue;
    const QuantJson& bits = object["weights"].value("num_bits", QuantJson());
    if (bits.is_number_integer() && bits != out.groups[0].weights->bits)
      fields.warn(
          fmt::format("{}: quant_algo says {} ({} bits), config_groups.{}.weights {} bits; quant_algo counts",
                      fields.place(), out.groups[0].weights->format, out.groups[0].weights->bits, name,
                      bits.get<std::int64_t>()));
  }
}

}  // namespace

std::optional<NumberChoice> kv_by_algorithm(const QuantFields& fields, const std::string& algorithm,
                                            const std::string& source) {
  std::optional<NumberChoice> kv;
  if (algorithm == "FP8") {
    kv = make_choice("fp8_e4m3", 8, "tensor", Role::kv, source);
  } else if (algorithm == "INT8") {
    kv = make_choice("int8", 8, "tensor:dynamic", Role::kv, source);
  } else if (algorithm == "NVFP4" || algorithm == "NVFP4_AFFINE") {
    kv = make_choice("nvfp4", 4, "", Role::kv, source);
  } else {
    fields.warn(
        fmt::format("{} is \"{}\", which is not known; the cache is taken for 16 bits", source, algorithm));
    return kv;
  }
  kv->granularity = kv->format == "nvfp4" ? "" : "tensor";
  kv->dynamic = "false";
  kv->symmetric = algorithm != "NVFP4_AFFINE";
  return kv;
}

void read_modelopt(const QuantFields& fields, QuantConfig& out) {
  out.head_by_default = true;
  out.ignored = fields.strings("exclude_modules");
  if (out.ignored.empty()) out.ignored = fields.strings("ignore");
  if (!fields.find("exclude_modules") && !fields.find("ignore"))
    out.notes.push_back(fields.place() + " excludes nothing, not even lm_head");
  if (const auto algorithm = fields.string("kv_cache_quant_algo"))
    out.kv = kv_by_algorithm(fields, *algorithm, fields.place("kv_cache_quant_algo"));
  if (auto scheme = read_kv_scheme(fields, "kv_cache_scheme")) {
    if (out.kv && out.kv->format != scheme->format)
      fields.warn(fmt::format("{}: kv_cache_quant_algo says {}, kv_cache_scheme {}; the first counts",
                              fields.place(), out.kv->format, scheme->format));
    if (!out.kv) out.kv = std::move(scheme);
  }
  const auto algorithm = fields.string("quant_algo");
  if (!algorithm) {
    if (!out.kv) fields.warn(fields.place() + " names neither quant_algo nor a cache's algorithm");
    return;
  }
  if (*algorithm == "MIXED_PRECISION") {
    read_layers(fields, out);
    return;
  }
  const Algorithm* known = find_algorithm(*algorithm);
  if (!known) {
    fields.warn(fmt::format("{} is \"{}\", which is not known", fields.place("quant_algo"), *algorithm));
    return;
  }
  const std::int64_t size = fields.integer("group_size").value_or(0);
  out.groups.push_back(group_of(*known, size, fields.place("quant_algo")));
  if (known->weights == "nvfp4" && size != 0 && size != 16)
    fields.warn(fmt::format("{} is {}, but NVFP4 has blocks of 16", fields.place("group_size"), size));
  check_config_groups(fields, out);
}

}  // namespace quantmap
