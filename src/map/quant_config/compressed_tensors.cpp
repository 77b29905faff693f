// compressed-tensors (vllm-project/compressed-tensors, quantization/quant_config.py, quant_args.py): groups
// of modules by target, each with its weights and input activations.
#include <fmt/format.h>

#include "map/quant_config/readers.hpp"

namespace quantmap {
namespace {

// The id of a format by its bits and type; MX and NVFP4 are told by what shares a scale.
std::string format_of(std::int64_t bits, const std::string& type, const std::string& strategy,
                      std::int64_t group, const std::string& scale) {
  if (type == "int") return fmt::format("int{}", bits);
  const bool power_of_two_scale =
      scale.find("uint8") != std::string::npos || scale.find("e8m0") != std::string::npos;
  if (bits == 4) {
    if (strategy == "tensor_group" || group == 16) return "nvfp4";
    return group == 32 || power_of_two_scale ? "mxfp4" : "fp4_e2m1";
  }
  if (bits == 8) return power_of_two_scale && group == 32 ? "mxfp8_e4m3" : "fp8_e4m3";
  return fmt::format("{}{}", type, bits);
}

struct Sharing {
  std::string words, granularity;
};

}  // namespace

std::optional<NumberChoice> read_ct_number(const QuantFields& parent, const char* key, Role role) {
  const QuantJson* object = parent.find(key);
  if (!object) return std::nullopt;
  const std::string place = parent.place(key);
  if (!object->is_object()) {
    parent.warn(fmt::format("{} is not an object; it is left out", place));
    return std::nullopt;
  }
  std::vector<std::string> warnings;
  const QuantFields fields(*object, place, warnings);
  const std::int64_t bits = fields.integer("num_bits").value_or(8);
  const std::string type = fields.string("type").value_or("int");
  std::string strategy = fields.string("strategy").value_or("");
  const std::int64_t group = fields.integer("group_size").value_or(0);
  const auto symmetric = fields.boolean("symmetric");
  const std::string scale = fields.string("scale_dtype").value_or("");
  std::string dynamic;
  if (const QuantJson* value = fields.find("dynamic"))
    dynamic = value->is_boolean()  ? (value->get<bool>() ? "true" : "false")
              : value->is_string() ? value->get<std::string>()
                                   : "";
  if (strategy.empty())
    strategy = group > 0 ? "group" : role == Role::activation && dynamic == "true" ? "token" : "tensor";
  const std::string format = format_of(bits, type, strategy, group, scale);
  const bool own_blocks = format == "nvfp4" || format.starts_with("mx");

  std::int64_t block_rows = 0, block_cols = 0;
  std::string words;
  if (!own_blocks) {
    if (strategy == "group") {
      words = fmt::format("g{}", group);
    } else if (strategy == "block") {
      const QuantJson* block = fields.find("block_structure");
      if (block && block->is_array() && block->size() == 2 && (*block)[0].is_number_integer() &&
          (*block)[1].is_number_integer()) {
        block_rows = (*block)[0];
        block_cols = (*block)[1];
        words = fmt::format("b{}x{}", block_rows, block_cols);
      } else {
        parent.warn(fmt::format("{}.block_structure is missing or not two numbers", place));
      }
    } else if (strategy == "channel" && role == Role::weight) {
      words = "channel";
    } else if (strategy == "token" && role == Role::activation) {
      words = "token";
    } else if (strategy == "tensor" || strategy == "attn_head") {
      words = "tensor";
    } else {
      parent.warn(fmt::format("{}.strategy is {}, which is not known for {}", place, strategy,
                              role == Role::weight ? "weights" : "activations"));
    }
    if (symmetric == false) words += ":asym";
    // Scales are kept in the model's own type.
    if (role == Role::weight && !words.empty()) words += ":sbf16";
    if (role == Role::activation && words == "tensor")
      words = "tensor:dynamic";  // static or not: the format's class
  }
  NumberChoice choice = make_choice(format, static_cast<int>(bits), words, role, place);
  choice.granularity = own_blocks ? "" : strategy;
  choice.group_size = own_blocks ? (format == "nvfp4" ? 16 : 32) : group;
  choice.block_rows = block_rows;
  choice.block_cols = block_cols;
  choice.symmetric = symmetric;
  choice.dynamic = dynamic;
  for (std::string& warning : warnings) parent.warn(std::move(warning));
  return choice;
}

std::optional<NumberChoice> read_kv_scheme(const QuantFields& fields, const char* key) {
  const QuantJson* value = fields.find(key);
  if (!value) return std::nullopt;
  if (value->is_string()) return kv_by_algorithm(fields, value->get<std::string>(), fields.place(key));
  if (!value->is_object()) {
    fields.warn(fields.place(key) + " is neither an object nor a word; it is left out");
    return std::nullopt;
  }
  std::vector<std::string> warnings;
  const QuantFields scheme(*value, fields.place(key), warnings);
  const std::int64_t bits = scheme.integer("num_bits").value_or(8);
  const std::string type = scheme.string("type").value_or("float");
  const std::string strategy = scheme.string("strategy").value_or("tensor");
  const std::string format = type == "int" ? fmt::format("int{}", bits) : bits == 4 ? "nvfp4" : "fp8_e4m3";
  NumberChoice choice = make_choice(format, static_cast<int>(bits), format == "nvfp4" ? "" : "tensor",
                                    Role::kv, fields.place(key));
  choice.granularity = strategy;
  choice.symmetric = scheme.boolean("symmetric");
  if (const auto dynamic = scheme.boolean("dynamic")) choice.dynamic = *dynamic ? "true" : "false";
  for (std::string& warning : warnings) fields.warn(std::move(warning));
  return choice;
}

namespace {

// What a storage format can hold, against what the group says.
void check_format(const QuantFields& fields, const std::string& format, const NumberChoice& weights) {
  const auto contradiction = [&](std::string_view holds) {
    fields.warn(fmt::format("{}.format is {}, which holds {}, but the weights are {} ({})", fields.place(),
                            format, holds, weights.format, weights.source));
  };
  const bool integers = weights.format.starts_with("int");
  if (format == "nvfp4-pack-quantized" && weights.format != "nvfp4") contradiction("nvfp4");
  if (format == "mxfp4-pack-quantized" && weights.format != "mxfp4") contradiction("mxfp4");
  if (format == "pack-quantized" && !integers) contradiction("packed integers");
  if (format == "int-quantized" && weights.format != "int8") contradiction("int8");
  if (format == "float-quantized" && (integers || weights.bits != 8)) contradiction("8-bit floats");
}

}  // namespace

void read_compressed_tensors(const QuantFields& fields, QuantConfig& out) {
  out.head_by_default = true;  // a Linear like any other, unless it is ignored
  out.ignored = fields.strings("ignore");
  out.kv = read_kv_scheme(fields, "kv_cache_scheme");
  const std::string format = fields.string("format").value_or("");
  const QuantJson* groups = fields.find("config_groups");
  if (groups && !groups->is_object()) fields.warn(fields.place("config_groups") + " is not an object");
  if (groups && groups->is_object()) {
    for (const auto& [name, object] : groups->items()) {
      const std::string place = fields.place("config_groups") + "." + name;
      if (!object.is_object()) {
        fields.warn(place + " is not an object; it is left out");
        continue;
      }
      const QuantFields group_fields(object, place, out.warnings);
      QuantGroup group;
      group.targets = group_fields.strings("targets");
      if (group.targets.empty())
        group_fields.warn(place + " has no targets: taken for every Linear of the decoder layers");
      group.matcher = NameMatcher(NameRule::names, group.targets, out.warnings);
      group.weights = read_ct_number(group_fields, "weights", Role::weight);
      group.activations = read_ct_number(group_fields, "input_activations", Role::activation);
      if (group.weights) {
        const std::string own = group_fields.string("format").value_or(format);
        check_format(fields, own, *group.weights);
        const QuantJson& weights = object["weights"];
        group.index_per_input = weights.value("actorder", QuantJson()) == "group";
      }
      if (const QuantJson* outputs = group_fields.find("output_activations"); outputs && outputs->is_object())
        out.notes.push_back(place + ": output activations are quantized too");
      out.groups.push_back(std::move(group));
    }
  }
  if (out.groups.empty() && !out.kv)
    fields.warn(fields.place() + " names neither config_groups nor kv_cache_scheme");
  if (const QuantJson* sparsity = fields.find("sparsity_config");
      sparsity && sparsity->is_object() && !sparsity->empty())
    out.notes.push_back("a sparsity_config is there: sparse weights are counted as dense");
  if (const QuantJson* transform = fields.find("transform_config");
      transform && transform->is_object() && !transform->empty())
    out.notes.push_back("a transform_config is there: weights were transformed (rotated) before quantizing");
}

}  // namespace quantmap
