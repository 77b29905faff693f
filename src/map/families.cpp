#include "map/families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoint/config_limits.hpp"
#include "checkpoint/json.hpp"
#include "checkpoint/json_fields.hpp"
#include "core/error.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kMaxExperts = 16'384;

enum class Windows : std::uint8_t {
  none,
  every,     // each layer, where sliding_window is set
  optional,  // where use_sliding_window is true: layers from max_window_layers on
  period,    // all but each Nth layer, N = the family's or `sliding_window_pattern`
};
enum class Experts : std::uint8_t { none, qwen3, mixtral, deepseek, gpt_oss };
enum class Projections : std::uint8_t { separate, fused, latent };  // q, k, v; one qkv and one gate_up; MLA

struct Family {
  std::string_view model_type;
  std::int64_t kv_heads;  // where the key is absent; 0: as many as heads
  std::int64_t head_dim;  // where the key is absent; 0: hidden_size / heads
  bool tied;              // where the key is absent
  Projections projections;
  Experts experts;
  bool qk_norm;
  bool qkv_bias;             // without a flag
  bool attention_bias_flag;  // `attention_bias`: q, k, v and o (MLA: q_a, kv_a and o)
  bool mlp_bias_flag;
  std::int64_t norms;  // of hidden_size, in each layer
  Windows windows;
  std::int64_t window_default;
  std::int64_t window_period;
  std::int64_t vocab_default;  // 0: the key is needed
};

using enum Projections;
constexpr std::array<Family, 14> kFamilies{{
    {"llama", 0, 0, false, separate, Experts::none, false, false, true, true, 2, Windows::none, 0, 0, 0},
    {"mistral", 8, 0, false, separate, Experts::none, false, false, false, false, 2, Windows::every, 4096, 0,
     0},
    {"qwen2", 32, 0, false, separate, Experts::none, false, true, false, false, 2, Windows::optional, 4096, 0,
     0},
    {"qwen3", 32, 128, false, separate, Experts::none, true, false, true, false, 2, Windows::optional, 4096,
     0, 0},
    {"qwen3_moe", 4, 0, false, separate, Experts::qwen3, true, false, true, false, 2, Windows::optional, 4096,
     0, 0},
    {"mixtral", 8, 0, false, separate, Experts::mixtral, false, false, false, false, 2, Windows::every, 0, 0,
     0},
    {"gemma2", 4, 256, true, separate, Experts::none, false, false, true, false, 4, Windows::period, 4096, 2,
     256000},
    {"gemma3_text", 4, 256, true, separate, Experts::none, true, false, true, false, 4, Windows::period, 4096,
     6, 262208},
    {"phi3", 0, 0, false, fused, Experts::none, false, false, false, false, 2, Windows::every, 0, 0, 0},
    {"smollm3", 4, 0, true, separate, Experts::none, false, false, true, true, 2, Windows::optional, 0, 0, 0},
    {"deepseek_v2", 0, 0, false, latent, Experts::deepseek, false, false, true, false, 2, Windows::none, 0, 0,
     0},
    {"deepseek_v3", 0, 0, false, latent, Experts::deepseek, false, false, true, false, 2, Windows::none, 0, 0,
     0},
    {"kimi_k2", 0, 0, false, latent, Experts::deepseek, false, false, true, false, 2, Windows::none, 0, 0, 0},
    {"gpt_oss", 8, 64, false, separate, Experts::gpt_oss, false, false, true, false, 2, Windows::period, 128,
     2, 0},
}};

const Family* find_family(std::string_view model_type) {
  for (const Family& family : kFamilies)
    if (family.model_type == model_type) return &family;
  return nullptr;
}

std::string known_families() {
  std::string known;
  for (const Family& family : kFamilies) known.append(known.empty() ? "" : ", ").append(family.model_type);
  return known;
}

// The geometry that several builders below share.
struct Geometry {
  std::int64_t hidden = 0, intermediate = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool attention_bias = false, mlp_bias = false;
};

class MapBuilder {
 public:
  MapBuilder(const nlohmann::json& config, const Family& family, ModelMap& map)
      : fields_(config, map.source), config_(config), family_(family), map_(map) {}

  void build();

 private:
  void read_geometry();
  void add_vector(std::string name, Part part, std::int64_t size);
  void add_linear(const std::string& name, std::int64_t rows, std::int64_t cols, Part part, bool bias);
  void add_attention(const std::string& layer);
  void add_latent_attention(const std::string& layer);
  void add_mlp(const std::string& name, std::int64_t intermediate);
  void add_experts(const std::string& layer);
  void add_expert_group(const std::string& name, const std::string& suffix, std::int64_t rows,
                        std::int64_t cols);
  void add_router(const std::string& name, bool linear, bool bias);
  bool has_experts(std::int64_t layer) const;
  void add_caches();
  std::vector<std::int64_t> windows() const;
  std::int64_t window_size() const;
  std::int64_t count(const char* key, std::int64_t most) const {
    return fields_.required_integer(key, 1, most);
  }

  JsonFields fields_;
  const nlohmann::json& config_;
  const Family& family_;
  ModelMap& map_;
  Geometry g_;
  std::int64_t experts_ = 0, experts_a_token_ = 0, expert_width_ = 0;
};

void MapBuilder::add_vector(std::string name, Part part, std::int64_t size) {
  MapModule module;
  module.name = std::move(name);
  module.part = part;
  module.rows = 1;
  module.cols = size;
  map_.modules.push_back(std::move(module));
}

void MapBuilder::add_linear(const std::string& name, std::int64_t rows, std::int64_t cols, Part part,
                            bool bias) {
  MapModule module;
  module.name = name;
  module.part = part;
  module.rows = rows;
  module.cols = cols;
  module.bias = bias ? rows : 0;
  module.linear = true;
  map_.modules.push_back(std::move(module));
}

void MapBuilder::read_geometry() {
  g_.hidden = count("hidden_size", kMaxWidth);
  g_.intermediate = count("intermediate_size", kMaxWidth);
  g_.heads = count("num_attention_heads", kMaxHeads);
  map_.layers = count("num_hidden_layers", kMaxLayers);
  map_.hidden_size = g_.hidden;
  map_.max_position = fields_.integer("max_position_embeddings", 1, kMaxPositions).value_or(0);
  g_.attention_bias = family_.attention_bias_flag && fields_.boolean("attention_bias").value_or(false);
  g_.mlp_bias = family_.mlp_bias_flag && fields_.boolean("mlp_bias").value_or(false);

  const char* kv_key = "num_key_value_heads";
  const std::int64_t absent = fields_.mentions(kv_key) || family_.kv_heads == 0 ? g_.heads : family_.kv_heads;
  g_.kv_heads = fields_.integer(kv_key, 1, kMaxHeads).value_or(absent);
  if (g_.heads % g_.kv_heads != 0)
    fields_.wrong(kv_key, fmt::format("a divisor of num_attention_heads {}", g_.heads),
                  fmt::format("{}{}", g_.kv_heads, fields_.has(kv_key) ? "" : ", the family's default"));

  if (family_.projections == latent) return;  // widths of its own
  // A head_dim that is null is derived (B45); an absent one is the family's.
  auto head_dim = fields_.integer("head_dim", 1, kMaxHeadDim);
  if (!head_dim && !fields_.mentions("head_dim") && family_.head_dim != 0) head_dim = family_.head_dim;
  if (!head_dim) {
    if (g_.hidden % g_.heads != 0)
      fields_.wrong("head_dim", "a number, for hidden_size is not a multiple of num_attention_heads",
                    fmt::format("none, with {} / {}", g_.hidden, g_.heads));
    head_dim = g_.hidden / g_.heads;
  }
  g_.head_dim = *head_dim;
}

void MapBuilder::add_attention(const std::string& layer) {
  const std::string attention = layer + ".self_attn";
  const bool bias = family_.qkv_bias || g_.attention_bias;
  const std::int64_t q = g_.heads * g_.head_dim, kv = g_.kv_heads * g_.head_dim;
  if (family_.projections == fused) {
    add_linear(attention + ".qkv_proj", q + 2 * kv, g_.hidden, Part::attention, bias);
  } else {
    add_linear(attention + ".q_proj", q, g_.hidden, Part::attention, bias);
    add_linear(attention + ".k_proj", kv, g_.hidden, Part::attention, bias);
    add_linear(attention + ".v_proj", kv, g_.hidden, Part::attention, bias);
  }
  add_linear(attention + ".o_proj", g_.hidden, q, Part::attention, g_.attention_bias);
  if (family_.qk_norm) {
    add_vector(attention + ".q_norm", Part::norms, g_.head_dim);
    add_vector(attention + ".k_norm", Part::norms, g_.head_dim);
  }
  if (family_.experts == Experts::gpt_oss) add_vector(attention + ".sinks", Part::attention, g_.heads);
}

// Multi-head latent attention (DeepSeek V2: section 2.1 of arXiv 2405.04434): keys and values are projections
// of one latent vector; that and the rotated part of the key are all that is cached.
void MapBuilder::add_latent_attention(const std::string& layer) {
  const std::string attention = layer + ".self_attn";
  const std::int64_t nope = count("qk_nope_head_dim", kMaxHeadDim),
                     rope = count("qk_rope_head_dim", kMaxHeadDim), value = count("v_head_dim", kMaxHeadDim),
                     latent_width = count("kv_lora_rank", kMaxWidth);
  if (const auto rank = fields_.integer("q_lora_rank", 1, kMaxWidth)) {
    add_linear(attention + ".q_a_proj", *rank, g_.hidden, Part::attention, g_.attention_bias);
    add_vector(attention + ".q_a_layernorm", Part::norms, *rank);
    add_linear(attention + ".q_b_proj", g_.heads * (nope + rope), *rank, Part::attention, false);
  } else {
    add_linear(attention + ".q_proj", g_.heads * (nope + rope), g_.hidden, Part::attention, false);
  }
  add_linear(attention + ".kv_a_proj_with_mqa", latent_width + rope, g_.hidden, Part::attention,
             g_.attention_bias);
  add_vector(attention + ".kv_a_layernorm", Part::norms, latent_width);
  add_linear(attention + ".kv_b_proj", g_.heads * (nope + value), latent_width, Part::attention, false);
  add_linear(attention + ".o_proj", g_.hidden, g_.heads * value, Part::attention, g_.attention_bias);
}

void MapBuilder::add_mlp(const std::string& name, std::int64_t intermediate) {
  if (family_.projections == fused) {
    add_linear(name + ".gate_up_proj", 2 * intermediate, g_.hidden, Part::mlp, g_.mlp_bias);
  } else {
    add_linear(name + ".gate_proj", intermediate, g_.hidden, Part::mlp, g_.mlp_bias);
    add_linear(name + ".up_proj", intermediate, g_.hidden, Part::mlp, g_.mlp_bias);
  }
  add_linear(name + ".down_proj", g_.hidden, intermediate, Part::mlp, g_.mlp_bias);
}

void MapBuilder::add_expert_group(const std::string& name, const std::string& suffix, std::int64_t rows,
                                  std::int64_t cols) {
  add_linear(name, rows, cols, Part::experts, false);
  MapModule& module = map_.modules.back();
  module.suffix = suffix;
  module.count = experts_;
  module.active = experts_a_token_;
  module.numbered = !suffix.empty();
}

void MapBuilder::add_router(const std::string& name, bool linear, bool bias) {
  add_linear(name, experts_, g_.hidden, Part::router, bias);
  map_.modules.back().linear = linear;
}

void MapBuilder::add_experts(const std::string& layer) {
  switch (family_.experts) {
    case Experts::none:
      return;
    case Experts::qwen3:
      add_router(layer + ".mlp.gate", true, false);
      break;
    case Experts::mixtral: {
      const std::string moe = layer + ".block_sparse_moe";
      add_router(moe + ".gate", true, false);
      add_expert_group(moe + ".experts.", ".w1", expert_width_, g_.hidden);
      add_expert_group(moe + ".experts.", ".w2", g_.hidden, expert_width_);
      add_expert_group(moe + ".experts.", ".w3", expert_width_, g_.hidden);
      return;
    }
    case Experts::deepseek: {
      // `noaux_tc` routing corrects scores by a stored bias for each expert (V3 and later).
      add_router(layer + ".mlp.gate", false, fields_.string("topk_method").value_or("") == "noaux_tc");
      const std::int64_t shared = fields_.integer("n_shared_experts", 0, kMaxExperts).value_or(0);
      if (shared > 0) add_mlp(layer + ".mlp.shared_experts", shared * expert_width_);
      break;
    }
    case Experts::gpt_oss: {
      // One module holds all experts of a layer.
      add_router(layer + ".mlp.router", false, true);
      add_expert_group(layer + ".mlp.experts.gate_up_proj", "", 2 * expert_width_, g_.hidden);
      map_.modules.back().bias = 2 * expert_width_;
      add_expert_group(layer + ".mlp.experts.down_proj", "", g_.hidden, expert_width_);
      map_.modules.back().bias = g_.hidden;
      return;
    }
  }
  const std::string experts = layer + ".mlp.experts.";
  add_expert_group(experts, ".gate_proj", expert_width_, g_.hidden);
  add_expert_group(experts, ".up_proj", expert_width_, g_.hidden);
  add_expert_group(experts, ".down_proj", g_.hidden, expert_width_);
}

// Which layers are mixtures; the others have one MLP of intermediate_size.
bool MapBuilder::has_experts(std::int64_t layer) const {
  switch (family_.experts) {
    case Experts::none:
      return false;
    case Experts::mixtral:
    case Experts::gpt_oss:
      return true;
    case Experts::qwen3: {
      const std::int64_t step = fields_.integer("decoder_sparse_step", 1, kMaxLayers).value_or(1);
      const bool dense = fields_.has("mlp_only_layers") && config_["mlp_only_layers"].is_array() &&
                         std::any_of(config_["mlp_only_layers"].begin(), config_["mlp_only_layers"].end(),
                                     [&](const nlohmann::json& one) { return one == layer; });
      return !dense && (layer + 1) % step == 0;
    }
    case Experts::deepseek: {
      const std::int64_t first = fields_.integer("first_k_dense_replace", 0, kMaxLayers).value_or(0);
      const std::int64_t step = fields_.integer("moe_layer_freq", 1, kMaxLayers).value_or(1);
      return experts_ > 0 && layer >= first && layer % step == 0;
    }
  }
  return false;
}

std::int64_t MapBuilder::window_size() const {
  const bool said = fields_.mentions("sliding_window");
  const auto stated = fields_.integer("sliding_window", 1, kMaxPositions);
  if (stated) return *stated;
  return said ? 0 : family_.window_default;  // null: none; absent: the configuration class's
}

// For each layer how many positions it keeps; 0: all.
std::vector<std::int64_t> MapBuilder::windows() const {
  std::vector<std::int64_t> out(static_cast<std::size_t>(map_.layers), 0);
  if (family_.windows == Windows::none) return out;
  const std::int64_t window = window_size();
  if (fields_.has("layer_types")) {
    const nlohmann::json& types = fields_.at("layer_types");
    if (!types.is_array() || types.size() != out.size())
      fields_.wrong("layer_types", fmt::format("{} entries, one for each layer", out.size()),
                    types.is_array() ? fmt::format("{} entries", types.size()) : describe(types));
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (types[i] != "sliding_attention" && types[i] != "full_attention")
        fields_.wrong(fmt::format("layer_types[{}]", i), "\"full_attention\" or \"sliding_attention\"",
                      describe(types[i]));
      if (types[i] == "sliding_attention") out[i] = window;
    }
    return out;
  }
  const std::int64_t period = fields_.integer("sliding_window_pattern", 1, kMaxLayers)
                                  .value_or(std::max<std::int64_t>(1, family_.window_period));
  const bool used = fields_.boolean("use_sliding_window").value_or(false);
  const std::int64_t first = family_.windows == Windows::optional
                                 ? fields_.integer("max_window_layers", 0, kMaxLayers).value_or(28)
                                 : 0;
  for (std::int64_t layer = 0; layer < map_.layers; ++layer) {
    const bool slides = family_.windows == Windows::every ||
                        (family_.windows == Windows::optional && used && layer >= first) ||
                        (family_.windows == Windows::period && (layer + 1) % period != 0);
    if (slides) out[static_cast<std::size_t>(layer)] = window;
  }
  return out;
}

void MapBuilder::add_caches() {
  const std::vector<std::int64_t> window = windows();
  for (const std::int64_t size : window) {
    CacheLayer cache;
    cache.window = size;
    const auto heads = static_cast<double>(g_.heads);
    if (family_.projections == latent) {
      const std::int64_t rope = count("qk_rope_head_dim", kMaxHeadDim),
                         nope = count("qk_nope_head_dim", kMaxHeadDim),
                         value = count("v_head_dim", kMaxHeadDim), rank = count("kv_lora_rank", kMaxWidth);
      cache.rows = 1;
      cache.key_width = rank + rope;
      cache.prefill_pair_flops = 2 * heads * static_cast<double>(nope + rope + value);
      cache.decode_pair_flops = 2 * heads * static_cast<double>(2 * rank + rope);
    } else {
      cache.rows = g_.kv_heads;
      cache.key_width = cache.value_width = g_.head_dim;
      cache.prefill_pair_flops = cache.decode_pair_flops = 4 * heads * static_cast<double>(g_.head_dim);
    }
    map_.caches.push_back(cache);
  }
}

void MapBuilder::build() {
  read_geometry();
  const std::int64_t vocab =
      family_.vocab_default != 0
          ? fields_.integer("vocab_size", 1, kMaxVocabulary).value_or(family_.vocab_default)
          : count("vocab_size", kMaxVocabulary);
  map_.tied_embeddings = fields_.boolean("tie_word_embeddings").value_or(family_.tied);
  switch (family_.experts) {
    case Experts::none:
      break;
    case Experts::qwen3:
      experts_ = count("num_experts", kMaxExperts);
      expert_width_ = count("moe_intermediate_size", kMaxWidth);
      break;
    case Experts::mixtral:
    case Experts::gpt_oss:
      experts_ = count("num_local_experts", kMaxExperts);
      expert_width_ = g_.intermediate;
      break;
    case Experts::deepseek:
      experts_ = fields_.integer("n_routed_experts", 1, kMaxExperts).value_or(0);
      if (experts_ > 0) expert_width_ = count("moe_intermediate_size", kMaxWidth);
      break;
  }
  if (experts_ > 0) experts_a_token_ = fields_.required_integer("num_experts_per_tok", 1, experts_);

  add_linear("model.embed_tokens", vocab, g_.hidden, Part::embeddings, false);
  map_.modules.back().linear = false;
  for (std::int64_t i = 0; i < map_.layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}", i);
    if (family_.projections == latent)
      add_latent_attention(layer);
    else
      add_attention(layer);
    if (has_experts(i))
      add_experts(layer);
    else
      add_mlp(layer + ".mlp", g_.intermediate);
    static constexpr std::array<const char*, 4> kNorms{".input_layernorm", ".post_attention_layernorm",
                                                       ".pre_feedforward_layernorm",
                                                       ".post_feedforward_layernorm"};
    for (std::int64_t norm = 0; norm < family_.norms; ++norm)
      add_vector(layer + kNorms[static_cast<std::size_t>(norm)], Part::norms, g_.hidden);
  }
  add_vector("model.norm", Part::norms, g_.hidden);
  if (!map_.tied_embeddings) add_linear("lm_head", vocab, g_.hidden, Part::lm_head, false);
  add_caches();

  // Every product above fits in 64 bits by the limits of each factor; their sum over experts and layers may
  // not.
  double sum = 0;
  for (const MapModule& module : map_.modules)
    sum += static_cast<double>(module.count) *
           (static_cast<double>(module.rows) * static_cast<double>(module.cols) +
            static_cast<double>(module.bias));
  if (!(sum < static_cast<double>(kMaxParameters)))
    fail_input("bad config", map_.source, "the model's size", "fewer than 2^55 parameters",
               fmt::format("{:.3g}", sum));
  if (const auto next = fields_.integer("num_nextn_predict_layers", 0, kMaxLayers); next && *next > 0)
    map_.notes.push_back(
        fmt::format("{} multi-token-prediction layer{} not counted", *next, *next == 1 ? " is" : "s are"));
}

}  // namespace

const nlohmann::json& text_config(const nlohmann::json& config) {
  const auto inner = config.find("text_config");
  return inner != config.end() && inner->is_object() ? *inner : config;
}

bool is_known_family(const nlohmann::json& config) {
  if (!config.is_object()) return false;
  const nlohmann::json& text = text_config(config);
  const auto type = text.find("model_type");
  return type != text.end() && type->is_string() && find_family(type->get<std::string>()) != nullptr;
}

ModelMap map_from_config(const nlohmann::json& config, const std::string& source) {
  if (!config.is_object()) fail_input("bad config", source, "the file", "a JSON object", describe(config));
  ModelMap map;
  map.source = source;
  const nlohmann::json& text = text_config(config);
  const JsonFields fields(text, map.source, &text == &config ? "" : "text_config.");
  const auto type = fields.string("model_type");
  if (!type) fields.wrong("model_type", known_families());
  const Family* family = find_family(*type);
  if (!family) fields.wrong("model_type", "a family whose sizes are known: " + known_families());
  map.model_type = *type;
  for (const char* part : {"vision_config", "audio_config"})
    if (const auto found = config.find(part); found != config.end() && found->is_object())
      map.notes.push_back(fmt::format("the {} part ({}) is not counted",
                                      part == std::string_view("vision_config") ? "vision" : "audio", part));
  MapBuilder(text, *family, map).build();
  return map;
}

}  // namespace quantmap
