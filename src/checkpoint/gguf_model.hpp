// A GGUF file as a model of one of the families: its metadata as a ModelConfig, its tensors under HF names
// (llama.cpp: gguf-py/gguf/constants.py and tensor_mapping.py, src/llama-model.cpp).
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/config.hpp"
#include "checkpoint/gguf.hpp"

namespace quantmap {

// Architectures llama (also Mistral models), qwen2, qwen3; another, a mixture of experts, a part of a split
// file, a partial rotation or an unknown RoPE scaling is refused by name. Biases and a tied head are what the
// file's tensors say: the format has no flags for them.
ModelConfig gguf_config(const GgufFile& file);

// The HF name of a tensor, or its own where no layer of these families uses it.
std::string hf_tensor_name(std::string_view gguf_name);

// Llama-architecture files hold the rows of q and k so that the two values that RoPE turns together are
// neighbours; HF keeps the halves of a head apart. True for the weights and biases that are stored so (B35).
bool has_interleaved_rows(const ModelConfig& config, std::string_view hf_name);
// The row of the file that holds row `row` of the HF tensor; heads of head_dim rows, queries and keys alike.
inline std::int64_t interleaved_row(std::int64_t row, std::int64_t head_dim) {
  const std::int64_t half = head_dim / 2;
  const std::int64_t in_head = row % head_dim;
  return row - in_head + 2 * (in_head % half) + in_head / half;
}

}  // namespace quantmap
