// GGUF block types take rows of whole blocks only, and models have rows that are not (SmolLM2-135M: 576
// values, blocks of 256). A weight is then kept in another type, as llama-quantize does
// (formats/ggml_encode.hpp); activations and caches have no such rule.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/config.hpp"
#include "model/forward.hpp"

namespace quantmap {

// Throws Error (usage) that names the module, the length of its rows and the type that llama-quantize would
// fall back to, if a Linear's input or a head's keys or values are not whole blocks of their format.
void require_whole_blocks(const Scheme& scheme, const ModelConfig& config);
void require_whole_blocks(const std::vector<Walker>& walkers, const ModelConfig& config);

// A line for each GGUF type that some weights are not kept in, and in what they are.
std::vector<std::string> fallback_notes(const Scheme& scheme, const ModelConfig& config);

}  // namespace quantmap
