// The tensors that a model of a given configuration has, under HF names: what a checkpoint must bring, in the
// order of a forward pass.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.hpp"

namespace quantmap {

struct ExpectedTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // [out][in]
};

// `lm_head.weight` is left out of a model with tied embeddings.
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

// Buffers that older versions of transformers saved and that are computed anew: no warning for them.
bool is_known_buffer(std::string_view name);

}  // namespace quantmap
