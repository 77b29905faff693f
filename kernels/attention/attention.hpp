// Attention of one key-value head over a cache, as the cache holds it: causal, with an optional sliding
// window, grouped query heads (Ainslie et al. 2023, arXiv 2305.13245). Scores are taken in tiles of queries;
// softmax in FP32 with its sum in double.
//
//   out[t, h] = sum_u p[t, h, u] v[u],  p = softmax over u in (t - window, t] of scale * q[t, h] . k[u]
//
// With BF16 operands q and the unnormalized p (largest 1) are rounded to BF16 once, as keys and values were;
// products accumulate in FP32, and the division by the sum comes after the product.
#pragma once

#include <cstdint>

#include "kernels/matmul/matmul.hpp"

namespace quantmap {

struct AttentionInput {
  OperandType type = OperandType::f32;
  std::int64_t tokens = 0;  // keys: positions 0 … tokens-1 of one window
  std::int64_t first_query =
      0;  // queries: positions first_query … tokens-1; no other row of q and out is touched
  std::int64_t group = 1;  // query heads that share this key-value head
  std::int64_t head_dim = 0;
  std::int64_t window = 0;   // positions a token sees, itself included; 0: all
  float scale = 1;           // 1/sqrt(head_dim)
  const float* q = nullptr;  // [tokens][q_stride], `group` heads of head_dim at its start; row = position
  std::int64_t q_stride = 0;
  const void* k = nullptr;  // [tokens][head_dim], operand type
  const void* v = nullptr;  // [tokens][head_dim], operand type
  // Scales kept outside the products; null: 1. Keys: one a token; values: one for all.
  const float* k_scale = nullptr;
  std::int64_t k_scale_count = 0;  // 0, 1 or tokens
  float v_scale = 1;
  float* out = nullptr;  // [tokens][out_stride], `group` heads of head_dim at its start; may be q
  std::int64_t out_stride = 0;
};

// Bytes of scratch that attention() wants for these sizes.
std::int64_t attention_scratch_bytes(const AttentionInput& input);
// scratch: 64-byte aligned.
void attention(const AttentionInput& input, std::byte* scratch);
// Naive, double, unrounded p.
void attention_ref(const AttentionInput& input);

}  // namespace quantmap
