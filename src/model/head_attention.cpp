#include "model/head_attention.hpp"

#include <algorithm>
#include <cmath>

#include "formats/bf16_array.hpp"

namespace quantmap {
namespace {

bool holds_fp16(const KvChoice& choice) {
  return choice.key.format->id == "fp16" || choice.value.format->id == "fp16";
}

// One head's keys or values as the cache would hold them.
struct CacheOperand {
  const void* data = nullptr;  // [tokens][head_dim]
  const float* scale = nullptr;
  std::int64_t scale_count = 0;  // 0, 1, or one a token
};

// x: [tokens][head_dim], overwritten. Scales of rows may stay outside for keys (they are constant along the
// summed axis), not for values.
CacheOperand cache_operand(const QuantSpec& spec, OperandType type, bool row_scales_outside,
                           std::int64_t tokens, std::int64_t dim, float* x, const TensorRange* range,
                           Arena& arena, QuantCounts* counts) {
  CacheOperand result;
  if (type == OperandType::f32) {
    if (!spec.is_reference()) quantize_tokens(spec, tokens, dim, x, x, range, counts);
    result.data = x;
    return result;
  }
  auto* operand = reinterpret_cast<std::uint16_t*>(arena.bytes(tokens * dim * 2));
  result.data = operand;
  const OperandForm form = spec.is_reference() ? OperandForm{} : operand_form(spec);
  const bool outside =
      form.outer == OuterScale::tensor || (form.outer == OuterScale::row && row_scales_outside);
  if (spec.is_reference()) {
    array_to_bf16(x, tokens * dim, operand);
  } else if (form.outer == OuterScale::none || outside) {
    float* scale = arena.floats(std::max<std::int64_t>(1, outer_scale_count(form, tokens, dim)));
    quantize_token_operands(spec, tokens, dim, x, operand, scale, range, counts);
    if (outside) {
      result.scale = scale;
      result.scale_count = form.outer == OuterScale::tensor ? 1 : tokens;
    }
  } else {
    quantize_tokens(spec, tokens, dim, x, x, range, counts);
    array_to_bf16(x, tokens * dim, operand);
  }
  return result;
}

// [tokens][stride] -> contiguous.
float* gather(const float* from, std::int64_t stride, std::int64_t tokens, std::int64_t dim, Arena& arena) {
  float* x = arena.floats(tokens * dim);
  for (std::int64_t t = 0; t < tokens; ++t)
    std::copy(from + t * stride, from + t * stride + dim, x + t * dim);
  return x;
}

}  // namespace

AttentionInput prepare_head(const HeadRows& rows, const KvChoice& cache, Compute compute, Arena& arena,
                            QuantCounts* counts) {
  const OperandType type =
      compute == Compute::f32 || holds_fp16(cache) ? OperandType::f32 : OperandType::bf16;
  const std::int64_t tokens = rows.tokens, dim = rows.head_dim;
  const CacheOperand keys =
      cache_operand(cache.key, type, true, tokens, dim, gather(rows.k, rows.kv_stride, tokens, dim, arena),
                    rows.key_range, arena, counts);
  const CacheOperand values =
      cache_operand(cache.value, type, false, tokens, dim, gather(rows.v, rows.kv_stride, tokens, dim, arena),
                    rows.value_range, arena, counts);
  AttentionInput input;
  input.type = type;
  input.tokens = tokens;
  input.group = rows.group;
  input.head_dim = dim;
  input.window = rows.window;
  input.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));
  input.q = rows.q;
  input.q_stride = rows.q_stride;
  input.k = keys.data;
  input.v = values.data;
  input.k_scale = keys.scale;
  input.k_scale_count = keys.scale_count;
  input.v_scale = values.scale ? values.scale[0] : 1.0f;
  return input;
}

void attend_branches(std::int64_t prefix, std::span<const RowRange> branches, const AttentionInput& input,
                     Arena& arena) {
  std::int64_t longest = 0;
  for (const RowRange& branch : branches) longest = std::max(longest, branch.count());
  AttentionInput one = input;
  one.tokens = prefix + longest;
  std::byte* scratch = arena.bytes(attention_scratch_bytes(one));
  if (prefix > 0) {
    one.tokens = prefix;
    attention(one, scratch);
  }
  // Keys and values of the prefix once, a branch's behind them in turn.
  const std::int64_t width = input.head_dim * operand_bytes(input.type);
  const bool scaled_rows = input.k_scale_count > 1;
  std::byte* keys = arena.bytes((prefix + longest) * width);
  std::byte* values = arena.bytes((prefix + longest) * width);
  float* scales = arena.floats(prefix + longest);
  const auto copy = [&](std::int64_t from, std::int64_t count, std::int64_t to) {
    const auto copy_rows = [&](const void* source, std::byte* target) {
      const std::byte* first = static_cast<const std::byte*>(source) + from * width;
      std::copy(first, first + count * width, target + to * width);
    };
    copy_rows(input.k, keys);
    copy_rows(input.v, values);
    if (scaled_rows) std::copy(input.k_scale + from, input.k_scale + from + count, scales + to);
  };
  copy(0, prefix, 0);
  one.k = keys;
  one.v = values;
  one.first_query = prefix;
  if (scaled_rows) one.k_scale = scales;
  for (const RowRange& branch : branches) {
    copy(branch.begin, branch.count(), prefix);
    one.tokens = prefix + branch.count();
    if (scaled_rows) one.k_scale_count = one.tokens;
    const std::int64_t ahead = branch.begin - prefix;  // of its rows before their positions
    one.q = input.q + ahead * input.q_stride;
    one.out = input.out + ahead * input.out_stride;
    attention(one, scratch);
  }
}

std::int64_t branch_cache_bytes(std::int64_t tokens, std::int64_t head_dim) {
  return tokens * (head_dim * 4 * 2 + 4) + 1024;
}

// Gathered keys or values, both operands, scales.
std::int64_t head_cache_bytes(std::int64_t tokens, std::int64_t head_dim) {
  return tokens * (head_dim * 4 * 3 + 4 * (1 + head_dim)) + 1024;
}

}  // namespace quantmap
