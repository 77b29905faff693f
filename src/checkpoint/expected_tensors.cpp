#include "checkpoint/expected_tensors.hpp"

#include <fmt/format.h>

namespace quantmap {

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t queries = std::int64_t{config.heads} * config.head_dim;
  const std::int64_t keys = std::int64_t{config.kv_heads} * config.head_dim;
  std::vector<ExpectedTensor> out;
  out.push_back({"model.embed_tokens.weight", {config.vocab_size, hidden}});
  for (std::int32_t layer = 0; layer < config.layers; ++layer) {
    const auto name = [&](std::string_view rest) { return fmt::format("model.layers.{}.{}", layer, rest); };
    const auto linear = [&](std::string_view module, std::int64_t rows, std::int64_t columns, bool bias) {
      out.push_back({name(fmt::format("{}.weight", module)), {rows, columns}});
      if (bias) out.push_back({name(fmt::format("{}.bias", module)), {rows}});
    };
    out.push_back({name("input_layernorm.weight"), {hidden}});
    linear("self_attn.q_proj", queries, hidden, config.q_bias);
    linear("self_attn.k_proj", keys, hidden, config.k_bias);
    linear("self_attn.v_proj", keys, hidden, config.v_bias);
    if (config.qk_norm) {
      out.push_back({name("self_attn.q_norm.weight"), {config.head_dim}});
      out.push_back({name("self_attn.k_norm.weight"), {config.head_dim}});
    }
    linear("self_attn.o_proj", hidden, queries, config.o_bias);
    out.push_back({name("post_attention_layernorm.weight"), {hidden}});
    linear("mlp.gate_proj", config.intermediate_size, hidden, config.mlp_bias);
    linear("mlp.up_proj", config.intermediate_size, hidden, config.mlp_bias);
    linear("mlp.down_proj", hidden, config.intermediate_size, config.mlp_bias);
  }
  out.push_back({"model.norm.weight", {hidden}});
  if (!config.tied_embeddings) out.push_back({"lm_head.weight", {config.vocab_size, hidden}});
  return out;
}

bool is_known_buffer(std::string_view name) { return name.ends_with("rotary_emb.inv_freq"); }

}  // namespace quantmap
