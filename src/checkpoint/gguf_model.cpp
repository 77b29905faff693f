#include "checkpoint/gguf_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "checkpoint/config_limits.hpp"
#include "checkpoint/rope_config.hpp"
#include "core/error.hpp"

namespace quantmap {
namespace {

constexpr std::array<std::string_view, 3> kArchitectures{"llama", "qwen2", "qwen3"};
constexpr std::string_view kFrequencyFactors = "rope_freqs.weight";

// Keys of the architecture, checked: `fields.integer("block_count", …)` reads `llama.block_count`.
class ArchitectureFields {
 public:
  ArchitectureFields(const GgufFile& file, std::string_view architecture)
      : file_(file), prefix_(architecture) {}

  std::string key(std::string_view name) const { return fmt::format("{}.{}", prefix_, name); }
  bool has(std::string_view name) const { return file_.has(key(name)); }

  // A number for each layer is taken where all are the same.
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t least, std::int64_t most) const {
    const std::string full = key(name);
    std::optional<std::int64_t> value;
    if (file_.is_array(full)) {
      const std::vector<std::int64_t> values = file_.integers(full);
      if (values.empty() || std::any_of(values.begin(), values.end(), [&](auto v) { return v != values[0]; }))
        wrong(name, "one number for all layers", fmt::format("[{}]", fmt::join(values, ",")));
      value = values[0];
    } else {
      value = file_.integer(full);
    }
    if (value && (*value < least || *value > most))
      wrong(name, fmt::format("a whole number from {} to {}", least, most), std::to_string(*value));
    return value;
  }
  std::int64_t required_integer(std::string_view name, std::int64_t least, std::int64_t most) const {
    const auto value = integer(name, least, most);
    if (!value) wrong(name, fmt::format("a whole number from {} to {}", least, most), "no such key");
    return *value;
  }
  std::optional<double> number(std::string_view name, double above) const {
    const auto value = file_.number(key(name));
    if (value && !(std::isfinite(*value) && *value > above))
      wrong(name, fmt::format("a number above {}", above), fmt::format("{}", *value));
    return value;
  }
  [[noreturn]] void wrong(std::string_view name, std::string_view expected, std::string_view found) const {
    fail_input("bad config", file_.name(), "key " + key(name), expected, found);
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

std::string architecture_of(const GgufFile& file) {
  const auto name = file.string("general.architecture");
  const std::string found = name ? quantmap::quoted(*name) : "no such key";
  if (!name || std::find(kArchitectures.begin(), kArchitectures.end(), *name) == kArchitectures.end())
    fail_input("bad config", file.name(), "key general.architecture", "llama, qwen2 or qwen3", found);
  return std::string(*name);
}

void refuse_split(const GgufFile& file) {
  if (const auto count = file.integer("split.count"); count && *count > 1)
    fail_input("bad config", file.name(), "key split.count", "a whole file",
               fmt::format("one of {} parts (llama-gguf-split --merge joins them)", *count));
}

void read_geometry(const ArchitectureFields& fields, const GgufFile& file, ModelConfig& out) {
  out.layers = static_cast<std::int32_t>(fields.required_integer("block_count", 1, kMaxLayers));
  out.hidden_size = fields.required_integer("embedding_length", 1, kMaxWidth);
  out.intermediate_size = fields.required_integer("feed_forward_length", 1, kMaxWidth);
  const std::int64_t heads = fields.required_integer("attention.head_count", 1, kMaxHeads);
  const std::int64_t kv_heads = fields.integer("attention.head_count_kv", 1, kMaxHeads).value_or(heads);
  if (heads % kv_heads != 0)
    fields.wrong("attention.head_count_kv", fmt::format("a divisor of {}", heads), std::to_string(kv_heads));
  out.heads = static_cast<std::int32_t>(heads);
  out.kv_heads = static_cast<std::int32_t>(kv_heads);
  auto head_dim = fields.integer("attention.key_length", 1, kMaxHeadDim);
  if (!head_dim) {
    if (out.hidden_size % heads != 0)
      fields.wrong("attention.key_length", "a number, for the width is not a multiple of the heads",
                   "no such key");
    head_dim = out.hidden_size / heads;
  }
  if (*head_dim % 2 != 0 || *head_dim > kMaxHeadDim)
    fields.wrong("attention.key_length", fmt::format("an even number up to {}", kMaxHeadDim),
                 std::to_string(*head_dim));
  out.head_dim = static_cast<std::int32_t>(*head_dim);
  const std::int64_t value_length =
      fields.integer("attention.value_length", 1, kMaxHeadDim).value_or(*head_dim);
  if (value_length != *head_dim)
    fields.wrong("attention.value_length", fmt::format("{}, the key length", *head_dim),
                 std::to_string(value_length));
  out.max_position = fields.required_integer("context_length", 1, kMaxPositions);
  const auto epsilon = fields.number("attention.layer_norm_rms_epsilon", 0.0);
  if (!epsilon || *epsilon > 1.0)
    fields.wrong("attention.layer_norm_rms_epsilon", "a number above 0, up to 1",
                 epsilon ? fmt::format("{}", *epsilon) : "no such key");
  out.rms_norm_eps = *epsilon;

  const GgufTensor* embeddings = file.find("token_embd.weight");
  if (!embeddings || embeddings->shape.size() != 2)
    fail_input("bad checkpoint", file.name(), "tensor token_embd.weight", "a matrix",
               embeddings ? fmt::format("{} dimensions", embeddings->shape.size()) : "no such tensor");
  out.vocab_size = embeddings->shape[0];
  if (out.vocab_size < 1 || out.vocab_size > kMaxVocabulary)
    fail_input("bad checkpoint", file.name(), "tensor token_embd.weight",
               fmt::format("1 to {} rows", kMaxVocabulary), std::to_string(out.vocab_size));
  const auto stated = fields.integer("vocab_size", 1, kMaxVocabulary);
  if (stated && *stated != out.vocab_size)
    fields.wrong("vocab_size", fmt::format("{}, the rows of token_embd.weight", out.vocab_size),
                 std::to_string(*stated));
}

// llama.cpp's attention factor (llama-context.cpp) is transformers' mscale ratio, with mscale 1.
void read_yarn(const ArchitectureFields& fields, ModelConfig& out) {
  RopeConfig& rope = out.rope;
  rope.kind = RopeKind::yarn;
  rope.original_max_position = static_cast<double>(
      fields.integer("rope.scaling.original_context_length", 1, kMaxPositions).value_or(out.max_position));
  rope.beta_fast = fields.number("rope.scaling.yarn_beta_fast", 0.0).value_or(32.0);
  rope.beta_slow = fields.number("rope.scaling.yarn_beta_slow", 0.0).value_or(1.0);
  if (rope.beta_fast < rope.beta_slow)
    fields.wrong("rope.scaling.yarn_beta_fast", "at least yarn_beta_slow", fmt::format("{}", rope.beta_fast));
  for (const char* key : {"rope.scaling.yarn_ext_factor", "rope.scaling.yarn_attn_factor"})
    if (const auto value = fields.number(key, 0.0); value && *value != 1.0)
      fields.wrong(key, "1", fmt::format("{}", *value));
  if (fields.has("rope.scaling.yarn_log_multiplier"))
    fields.wrong("rope.scaling.yarn_log_multiplier", "no such key", "one");
  rope.attention_factor = yarn_mscale(rope.factor);
}

void read_rope(const ArchitectureFields& fields, const GgufFile& file, ModelConfig& out) {
  const std::int64_t turned = fields.integer("rope.dimension_count", 0, kMaxHeadDim).value_or(out.head_dim);
  if (turned != out.head_dim)
    fields.wrong("rope.dimension_count", fmt::format("{}, rotation of whole heads", out.head_dim),
                 std::to_string(turned));
  RopeConfig& rope = out.rope;
  rope.theta = fields.number("rope.freq_base", 1.0).value_or(10000.0);
  // Without a type llama.cpp scales linearly where there is a factor; 0 and the older key count as in
  // llama.cpp.
  const std::string type(file.string(fields.key("rope.scaling.type")).value_or("linear"));
  double factor = fields.number("rope.scaling.factor", -1.0).value_or(0.0);
  if (factor == 0.0) factor = fields.number("rope.scale_linear", -1.0).value_or(0.0);
  if (factor < 0.0) fields.wrong("rope.scaling.factor", "a number above 0", fmt::format("{}", factor));
  if (type == "linear") {
    rope.kind = factor == 0.0 || factor == 1.0 ? RopeKind::standard : RopeKind::linear;
    rope.factor = factor == 0.0 ? 1.0 : factor;
  } else if (type == "yarn") {
    if (factor == 0.0) fields.wrong("rope.scaling.factor", "a number above 0", "none");
    rope.factor = factor;
    read_yarn(fields, out);
  } else if (type != "none") {
    fields.wrong("rope.scaling.type", "none, linear or yarn", quantmap::quoted(type));
  }
  const double attention_factor = fields.number("rope.scaling.attn_factor", 0.0).value_or(1.0);
  if (rope.kind != RopeKind::yarn && attention_factor != 1.0)
    fields.wrong("rope.scaling.attn_factor", "1 without YaRN", fmt::format("{}", attention_factor));
  rope.attention_factor *= attention_factor;

  for (const char* name : {"rope_factors_long.weight", "rope_factors_short.weight"})
    if (file.find(name))
      fail_input("bad config", file.name(), fmt::format("tensor {}", name), "none", "LongRoPE");
  const GgufTensor* factors = file.find(kFrequencyFactors);
  if (!factors) return;
  const std::int64_t pairs = out.head_dim / 2;
  if (factors->shape != std::vector<std::int64_t>{pairs} || factors->type->name != "F32")
    fail_input("bad checkpoint", file.name(), fmt::format("tensor {}", kFrequencyFactors),
               fmt::format("F32 [{}]", pairs),
               fmt::format("{} [{}]", factors->type->name, fmt::join(factors->shape, ",")));
  rope.frequency_factors.resize(static_cast<std::size_t>(pairs));
  decode_ggml(*factors->type, factors->data, pairs, rope.frequency_factors.data());
  for (const float value : rope.frequency_factors)
    if (!(std::isfinite(value) && value > 0.0F))
      fail_input("bad checkpoint", file.name(), fmt::format("tensor {}", kFrequencyFactors),
                 "numbers above 0", fmt::format("{}", value));
}

struct NamePair {
  std::string_view gguf, hf;
};

constexpr std::array<NamePair, 3> kTopNames{{
    {"token_embd.", "model.embed_tokens."},
    {"output_norm.", "model.norm."},
    {"output.", "lm_head."},
}};
constexpr std::array<NamePair, 11> kLayerNames{{
    {"attn_norm.", "input_layernorm."},
    {"attn_q.", "self_attn.q_proj."},
    {"attn_k.", "self_attn.k_proj."},
    {"attn_v.", "self_attn.v_proj."},
    {"attn_output.", "self_attn.o_proj."},
    {"attn_q_norm.", "self_attn.q_norm."},
    {"attn_k_norm.", "self_attn.k_norm."},
    {"ffn_norm.", "post_attention_layernorm."},
    {"ffn_gate.", "mlp.gate_proj."},
    {"ffn_up.", "mlp.up_proj."},
    {"ffn_down.", "mlp.down_proj."},
}};

// `prefix` + what follows the pair's GGUF part, which is `weight` or `bias`; empty if none fits.
template <std::size_t N>
std::string mapped(const std::array<NamePair, N>& names, std::string_view name, std::string_view prefix) {
  for (const NamePair& pair : names) {
    if (!name.starts_with(pair.gguf)) continue;
    const std::string_view rest = name.substr(pair.gguf.size());
    if (rest == "weight" || rest == "bias") return fmt::format("{}{}{}", prefix, pair.hf, rest);
  }
  return {};
}

}  // namespace

ModelConfig gguf_config(const GgufFile& file) {
  const std::string architecture = architecture_of(file);
  refuse_split(file);
  const ArchitectureFields fields(file, architecture);
  if (const auto experts = fields.integer("expert_count", 0, kMaxHeads).value_or(0); experts > 0)
    fields.wrong("expert_count", "no mixture of experts", std::to_string(experts));

  ModelConfig out;
  out.model_type = architecture;
  out.source = file.name();
  read_geometry(fields, file, out);
  read_rope(fields, file, out);
  out.qk_norm = architecture == "qwen3";
  const auto has = [&](std::string_view name) {
    return file.find(fmt::format("blk.0.{}.bias", name)) != nullptr;
  };
  const bool always = architecture == "qwen2";
  out.q_bias = always || has("attn_q");
  out.k_bias = always || has("attn_k");
  out.v_bias = always || has("attn_v");
  out.o_bias = has("attn_output");
  out.mlp_bias = has("ffn_gate") || has("ffn_up") || has("ffn_down");
  out.tied_embeddings = !file.find("output.weight");
  // What llama.cpp would do for these no family here does.
  for (const char* key : {"attention.sliding_window_pattern", "attention.scale", "attention.clamp_kqv",
                          "attention.temperature_scale", "attn_logit_softcapping", "final_logit_softcapping",
                          "residual_scale", "embedding_scale", "logit_scale"})
    if (fields.has(key)) fields.wrong(key, "no such key", "one");
  out.window.assign(static_cast<std::size_t>(out.layers),
                    fields.integer("attention.sliding_window", 0, kMaxPositions).value_or(0));
  return out;
}

std::string hf_tensor_name(std::string_view gguf_name) {
  std::string name = mapped(kTopNames, gguf_name, "");
  if (!name.empty()) return name;
  constexpr std::string_view kBlock = "blk.";
  if (!gguf_name.starts_with(kBlock)) return std::string(gguf_name);
  const std::size_t dot = gguf_name.find('.', kBlock.size());
  if (dot == gguf_name.npos) return std::string(gguf_name);
  const std::string_view layer = gguf_name.substr(kBlock.size(), dot - kBlock.size());
  // One spelling for each layer, so that two tensors never get one name.
  const bool number = !layer.empty() && layer.size() < 10 &&
                      std::all_of(layer.begin(), layer.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
                      (layer.size() == 1 || layer[0] != '0');
  if (number) name = mapped(kLayerNames, gguf_name.substr(dot + 1), fmt::format("model.layers.{}.", layer));
  return name.empty() ? std::string(gguf_name) : name;
}

bool has_interleaved_rows(const ModelConfig& config, std::string_view hf_name) {
  if (config.model_type != "llama") return false;
  for (const char* part : {".self_attn.q_proj.", ".self_attn.k_proj."})
    if (hf_name.find(part) != hf_name.npos) return true;
  return false;
}

}  // namespace quantmap
