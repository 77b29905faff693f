#include "checkpoint/config.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoint/config_limits.hpp"
#include "checkpoint/json.hpp"
#include "checkpoint/json_fields.hpp"
#include "checkpoint/rope_config.hpp"
#include "core/error.hpp"
#include "core/mapped_file.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kDefaultWindow = 4096;  // mistral, qwen2, qwen3

enum class Window {
  none,
  always,
  optional
};  // never; where sliding_window is set; where use_sliding_window is

// What a family's configuration class assumes where config.json is silent (transformers 5.24).
struct Family {
  std::string_view model_type;
  std::int64_t kv_heads;  // 0: as many as heads
  std::int64_t head_dim;  // 0: hidden_size / heads
  std::int64_t max_position;
  Window window;
  bool qk_norm;
  bool qkv_bias;             // without a flag
  bool attention_bias_flag;  // `attention_bias`: q, k, v and o
  bool mlp_bias_flag;        // `mlp_bias`: gate, up and down
};

constexpr std::array<Family, 4> kFamilies{{
    {"llama", 0, 0, 2048, Window::none, false, false, true, true},
    {"mistral", 8, 0, 131072, Window::always, false, false, false, false},
    {"qwen2", 32, 0, 32768, Window::optional, false, true, false, false},
    {"qwen3", 32, 128, 32768, Window::optional, true, false, true, false},
}};

const Family& family_of(const JsonFields& fields) {
  constexpr std::string_view kKnown = "llama, mistral, qwen2 or qwen3";
  // Many multimodal checkpoints name a text family inside; the whole is another architecture.
  for (const char* key : {"text_config", "vision_config", "audio_config"})
    if (fields.has(key))
      fields.wrong(key, "a text-only model of a known family", "a multimodal configuration");
  const auto model_type = fields.string("model_type");
  if (!model_type) fields.wrong("model_type", kKnown);
  for (const Family& family : kFamilies)
    if (family.model_type == *model_type) {
      for (const char* key : {"num_local_experts", "num_experts"})
        if (fields.has(key)) fields.wrong(key, "no mixture of experts");
      return family;
    }
  fields.wrong("model_type", kKnown);
}

void refuse_quantized(const JsonFields& fields) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (!fields.has(key)) continue;
    const nlohmann::json& value = fields.at(key);
    const auto method = value.is_object() ? value.find("quant_method") : value.end();
    fields.wrong(
        key, "an unquantized checkpoint",
        value.is_object() && method != value.end() ? "quant_method " + describe(*method) : describe(value));
  }
}

void read_geometry(const JsonFields& fields, const Family& family, ModelConfig& out) {
  out.hidden_size = fields.required_integer("hidden_size", 1, kMaxWidth);
  out.intermediate_size = fields.required_integer("intermediate_size", 1, kMaxWidth);
  out.vocab_size = fields.required_integer("vocab_size", 1, kMaxVocabulary);
  out.layers = static_cast<std::int32_t>(fields.required_integer("num_hidden_layers", 1, kMaxLayers));
  const std::int64_t heads = fields.required_integer("num_attention_heads", 1, kMaxHeads);
  out.heads = static_cast<std::int32_t>(heads);

  const char* kv_key = "num_key_value_heads";
  const std::int64_t absent = fields.mentions(kv_key) || family.kv_heads == 0 ? heads : family.kv_heads;
  const std::int64_t kv_heads = fields.integer(kv_key, 1, kMaxHeads).value_or(absent);
  if (heads % kv_heads != 0)
    fields.wrong(kv_key, fmt::format("a divisor of num_attention_heads {}", heads),
                 fmt::format("{}{}", kv_heads, fields.has(kv_key) ? "" : ", the family's default"));
  out.kv_heads = static_cast<std::int32_t>(kv_heads);

  // A head_dim that is null is derived (B45); an absent one is the family's.
  std::optional<std::int64_t> head_dim = fields.integer("head_dim", 1, kMaxHeadDim);
  if (!head_dim && !fields.mentions("head_dim") && family.head_dim != 0) head_dim = family.head_dim;
  if (!head_dim) {
    if (out.hidden_size % heads != 0)
      fields.wrong("head_dim", "a number, for hidden_size is not a multiple of num_attention_heads",
                   fmt::format("none, with {} / {}", out.hidden_size, heads));
    head_dim = out.hidden_size / heads;
  }
  if (*head_dim % 2 != 0 || *head_dim > kMaxHeadDim)
    fields.wrong("head_dim", fmt::format("an even number up to {}", kMaxHeadDim), std::to_string(*head_dim));
  out.head_dim = static_cast<std::int32_t>(*head_dim);
}

// Which layers slide: `layer_types` where given, else the family's own keys.
std::vector<bool> sliding_layers(const JsonFields& fields, const Family& family, const ModelConfig& config,
                                 bool enabled) {
  std::vector<bool> sliding(static_cast<std::size_t>(config.layers), false);
  if (!fields.has("layer_types")) {
    const std::int64_t first = family.window == Window::optional
                                   ? fields.integer("max_window_layers", 0, kMaxLayers).value_or(28)
                                   : 0;
    for (std::int64_t i = first; enabled && i < config.layers; ++i)
      sliding[static_cast<std::size_t>(i)] = true;
    return sliding;
  }
  const nlohmann::json& types = fields.at("layer_types");
  if (!types.is_array()) fields.wrong("layer_types", "an array of strings");
  if (types.size() != sliding.size())
    fields.wrong("layer_types", fmt::format("{} entries, one for each layer", sliding.size()));
  for (std::size_t i = 0; i < sliding.size(); ++i) {
    sliding[i] = types[i] == "sliding_attention";
    if (!sliding[i] && types[i] != "full_attention")
      fields.wrong(fmt::format("layer_types[{}]", i), "\"full_attention\" or \"sliding_attention\"",
                   describe(types[i]));
  }
  return sliding;
}

void read_window(const JsonFields& fields, const Family& family, ModelConfig& out) {
  out.window.assign(static_cast<std::size_t>(out.layers), 0);
  // An absent key is transformers' default; null means no window.
  const bool has_window = fields.has("sliding_window") || !fields.mentions("sliding_window");
  const auto used = fields.boolean("use_sliding_window");
  const bool enabled = has_window && (family.window == Window::always ||
                                      (family.window == Window::optional && used.value_or(false)));
  const std::vector<bool> sliding = sliding_layers(fields, family, out, enabled);
  for (std::size_t i = 0; i < sliding.size(); ++i) {
    if (!sliding[i]) continue;
    const auto contradiction = [&](std::string_view reason) {
      fields.wrong(fmt::format("layer_types[{}]", i), fmt::format("\"full_attention\", for {}", reason),
                   "\"sliding_attention\"");
    };
    if (family.window == Window::none) contradiction("llama has no window");
    if (!has_window) contradiction("sliding_window is null");
    if (family.window == Window::optional && used && !*used) contradiction("use_sliding_window is false");
    out.window[i] = fields.integer("sliding_window", 1, kMaxPositions).value_or(kDefaultWindow);
  }
}

void read_biases(const JsonFields& fields, const Family& family, ModelConfig& out) {
  const bool attention = family.attention_bias_flag && fields.boolean("attention_bias").value_or(false);
  out.q_bias = out.k_bias = out.v_bias = family.qkv_bias || attention;
  out.o_bias = attention;
  out.mlp_bias = family.mlp_bias_flag && fields.boolean("mlp_bias").value_or(false);
}

}  // namespace

ModelConfig parse_config(const nlohmann::json& config, const std::string& source) {
  if (!config.is_object()) fail_input("bad config", source, "the file", "a JSON object", describe(config));
  const JsonFields fields(config, source);
  const Family& family = family_of(fields);
  refuse_quantized(fields);

  ModelConfig out;
  out.model_type = family.model_type;
  out.source = source;
  read_geometry(fields, family, out);
  out.max_position =
      fields.integer("max_position_embeddings", 1, kMaxPositions).value_or(family.max_position);
  const auto activation = fields.string("hidden_act");
  if (activation && *activation != "silu" && *activation != "swish")  // two names of one function
    fields.wrong("hidden_act", "\"silu\"");
  out.rms_norm_eps = fields.number("rms_norm_eps", 0.0).value_or(1e-6);
  if (out.rms_norm_eps > 1.0) fields.wrong("rms_norm_eps", "a number above 0, up to 1");
  out.qk_norm = family.qk_norm;
  out.tied_embeddings = fields.boolean("tie_word_embeddings").value_or(false);
  if (fields.boolean("use_mrope").value_or(false)) fields.wrong("use_mrope", "false");
  read_biases(fields, family, out);
  read_window(fields, family, out);
  out.rope = parse_rope(config, source, out.max_position);
  return out;
}

ModelConfig read_config(const std::filesystem::path& config_json) {
  const MappedFile file(config_json);
  return parse_config(parse_json(file.text(), "bad config", file.name()), file.name());
}

}  // namespace quantmap
