// A model family as facts: which Linears a decoder layer has, how large they are, and what their modules are
// called in an HF checkpoint. Everything else that differs between families is a field of ModelConfig.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "checkpoint/config.hpp"

namespace quantmap {

enum class LinearId : std::uint8_t { q, k, v, o, gate, up, down };
inline constexpr std::array<LinearId, 7> kLayerLinears = {
    LinearId::q, LinearId::k, LinearId::v, LinearId::o, LinearId::gate, LinearId::up, LinearId::down};

struct LinearShape {
  std::int64_t out = 0, in = 0;
  bool bias = false;
};
LinearShape linear_shape(const ModelConfig& config, LinearId id);

std::string layer_name(int layer);                // `model.layers.3`
std::string linear_name(int layer, LinearId id);  // `model.layers.3.self_attn.q_proj`
std::string attention_name(int layer);            // `model.layers.3.self_attn`
inline constexpr const char* kEmbedding = "model.embed_tokens";
inline constexpr const char* kFinalNorm = "model.norm";
inline constexpr const char* kHead = "lm_head";

inline std::int64_t query_width(const ModelConfig& config) {
  return std::int64_t{config.heads} * config.head_dim;
}
inline std::int64_t kv_width(const ModelConfig& config) {
  return std::int64_t{config.kv_heads} * config.head_dim;
}

}  // namespace quantmap
