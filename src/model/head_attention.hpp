// One key-value head of one window, from FP32 queries, keys and values to what the attention kernel reads:
// keys and values as the walker's cache holds them.
#pragma once

#include <cstdint>
#include <span>

#include "core/row_range.hpp"
#include "kernels/attention/attention.hpp"
#include "model/arena.hpp"
#include "model/operand.hpp"
#include "scheme/scheme.hpp"

namespace quantmap {

struct HeadRows {
  std::int64_t tokens = 0, group = 1, head_dim = 0;
  std::int64_t window = 0;   // positions a token sees; 0: all
  const float* q = nullptr;  // `group` heads side by side, row stride q_stride
  std::int64_t q_stride = 0;
  const float* k = nullptr;  // this head's columns, row stride kv_stride
  const float* v = nullptr;
  std::int64_t kv_stride = 0;
  // Over all heads of the window; read where the formats need one.
  const TensorRange* key_range = nullptr;
  const TensorRange* value_range = nullptr;
};

// Everything of the kernel's input but where its output goes. Points into `arena` and rows.q.
AttentionInput prepare_head(const HeadRows& rows, const KvChoice& cache, Compute compute, Arena& arena,
                            QuantCounts* counts);
// Attention where the rows behind a prefix are branches (PassWindow): each sees the prefix and itself. input:
// of all rows, as prepare_head makes it, with its output set.
void attend_branches(std::int64_t prefix, std::span<const RowRange> branches, const AttentionInput& input,
                     Arena& arena);
// What it takes of the arena besides attention's own scratch.
std::int64_t branch_cache_bytes(std::int64_t tokens, std::int64_t head_dim);

// What prepare_head takes of the arena, whatever the formats.
std::int64_t head_cache_bytes(std::int64_t tokens, std::int64_t head_dim);

}  // namespace quantmap
