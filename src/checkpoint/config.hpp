// A model's architecture as its configuration says it (config.json of HF transformers, or GGUF metadata),
// resolved: every default filled in as the family's reference implementation does. Only decoder-only
// transformers of the families below; another is refused by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace quantmap {

enum class RopeKind : std::uint8_t { standard, linear, llama3, yarn };

struct RopeConfig {
  RopeKind kind = RopeKind::standard;
  double theta = 10000.0;
  double factor = 1.0;                       // linear, llama3, yarn
  double low_freq_factor = 1.0;              // llama3
  double high_freq_factor = 4.0;             // llama3
  double original_max_position = 0;          // llama3, yarn
  double beta_fast = 32.0, beta_slow = 1.0;  // yarn
  double attention_factor = 1.0;             // yarn: cos and sin are multiplied by it; resolved
  bool truncate = true;                      // yarn: ramp ends rounded to whole pairs
  // One divisor for each pair's inverse frequency, on top of `kind`; empty: none. GGUF keeps Llama 3's
  // scaling so (tensor `rope_freqs.weight`).
  std::vector<float> frequency_factors;
};

struct ModelConfig {
  std::string model_type;  // `llama`, `mistral`, `qwen2`, `qwen3`
  std::string source;      // file it was read from, for messages
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int32_t layers = 0;
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int64_t max_position = 0;
  double rms_norm_eps = 1e-6;
  bool qk_norm = false;  // RMSNorm over head_dim on queries and keys before RoPE (qwen3)
  // Biases that the family's modules have (B47: decided by the family and its flags, never by a default
  // alone).
  bool q_bias = false, k_bias = false, v_bias = false, o_bias = false, mlp_bias = false;
  bool tied_embeddings = false;  // lm_head is embed_tokens
  RopeConfig rope;
  // For each layer: how many positions a token sees, itself included; 0: all before it.
  std::vector<std::int64_t> window;
};

// Throws Error (input) naming `source`, the key, what is expected and what was found.
ModelConfig parse_config(const nlohmann::json& config, const std::string& source);
ModelConfig read_config(const std::filesystem::path& config_json);

}  // namespace quantmap
