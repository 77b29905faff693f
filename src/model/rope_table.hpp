// Cosines and sines of rotary embedding for positions 0 … count-1, as HF transformers computes them: inverse
// frequencies in FP32, the angle rounded to FP32 before cos and sin (modeling_rope_utils.py: default, linear,
// llama3, yarn; YaRN: Peng et al. 2023, arXiv 2309.00071).
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/config.hpp"

namespace quantmap {

// [head_dim/2], the frequency of each pair after scaling.
std::vector<float> inverse_frequencies(const RopeConfig& rope, std::int64_t head_dim);

struct RopeTable {
  std::vector<float> cosines, sines;  // [count][head_dim/2]
};
RopeTable rope_table(const RopeConfig& rope, std::int64_t head_dim, std::int64_t count);
// The same from given frequencies.
RopeTable rope_table(const RopeConfig& rope, const std::vector<float>& frequencies, std::int64_t count);

}  // namespace quantmap
