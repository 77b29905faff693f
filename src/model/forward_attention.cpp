#include <algorithm>
#include <cmath>
#include <mutex>

#include "core/parallel.hpp"
#include "formats/bf16_array.hpp"
#include "kernels/attention/attention.hpp"
#include "model/forward_parts.hpp"

namespace quantmap {
namespace {

KvChoice walker_cache(const Walker& walker, int layer) {
  if (walker.scheme) return walker.scheme->cache(layer);
  static const QuantSpec reference = parse_quant_spec("bf16", Role::kv);
  return {reference, reference};
}

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

}  // namespace

void Forward::run_attention(int layer) {
  const ModelConfig& c = config();
  std::vector<int> everyone;
  std::vector<KvChoice> cache;
  for (std::size_t w = 0; w < walkers_.size(); ++w) {
    everyone.push_back(static_cast<int>(w));
    cache.push_back(walker_cache(walkers_[w], layer));
  }
  Timer timer(*this, everyone);
  const std::int64_t keys_at = query_width(c), values_at = keys_at + kv_width(c);

  // A tensor scale spans all heads of the window.
  struct Ranges {
    TensorRange key, value;
  };
  std::vector<Ranges> ranges(walkers_.size() * windows_.size());
  parallel_for(static_cast<std::int64_t>(ranges.size()), [&](std::int64_t task, int worker) {
    const auto walker = static_cast<int>(static_cast<std::size_t>(task) / windows_.size());
    const std::size_t window = static_cast<std::size_t>(task) % windows_.size();
    const KvChoice& choice = cache[static_cast<std::size_t>(walker)];
    const bool key = choice.key.needs_tensor_range(), value = choice.value.needs_tensor_range();
    if (!key && !value) return;
    const Timer::Task measured(timer, worker, walker);
    const auto length = static_cast<std::int64_t>(windows_[window].ids.size());
    const float* rows = inner_rows({walker, window, 0, length});
    const auto width = static_cast<std::size_t>(kv_width(c));
    for (std::int64_t t = 0; t < length; ++t) {
      const float* row = rows + t * inner_width_;
      if (key) ranges[static_cast<std::size_t>(task)].key.merge(measure_range({row + keys_at, width}));
      if (value) ranges[static_cast<std::size_t>(task)].value.merge(measure_range({row + values_at, width}));
    }
  });

  std::mutex counts_mutex;
  const std::int64_t per_walker = static_cast<std::int64_t>(windows_.size()) * c.kv_heads;
  parallel_for(static_cast<std::int64_t>(walkers_.size()) * per_walker, [&](std::int64_t task, int worker) {
    const auto walker = static_cast<int>(task / per_walker);
    const auto window = static_cast<std::size_t>(task % per_walker / c.kv_heads);
    const std::int64_t head = task % c.kv_heads;
    const Timer::Task measured(timer, worker, walker);
    const KvChoice& choice = cache[static_cast<std::size_t>(walker)];
    const Compute compute = walkers_[static_cast<std::size_t>(walker)].compute;
    const OperandType type =
        compute == Compute::f32 || holds_fp16(choice) ? OperandType::f32 : OperandType::bf16;
    const auto length = static_cast<std::int64_t>(windows_[window].ids.size());
    float* rows = inner_rows({walker, window, 0, length});
    Arena arena(scratch_[static_cast<std::size_t>(worker)]);
    const auto gather = [&](std::int64_t column) {
      float* x = arena.floats(length * c.head_dim);
      for (std::int64_t t = 0; t < length; ++t) {
        const float* from = rows + t * inner_width_ + column + head * c.head_dim;
        std::copy(from, from + c.head_dim, x + t * c.head_dim);
      }
      return x;
    };
    const Ranges& range = ranges[static_cast<std::size_t>(walker) * windows_.size() + window];
    QuantCounts counts;
    const CacheOperand keys = cache_operand(choice.key, type, true, length, c.head_dim, gather(keys_at),
                                            &range.key, arena, &counts);
    const CacheOperand values = cache_operand(choice.value, type, false, length, c.head_dim,
                                              gather(values_at), &range.value, arena, &counts);
    const std::int64_t group = c.heads / c.kv_heads;
    AttentionInput input;
    input.type = type;
    input.tokens = length;
    input.group = group;
    input.head_dim = c.head_dim;
    input.window = c.window[static_cast<std::size_t>(layer)];
    input.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)));
    input.q = rows + head * group * c.head_dim;
    input.q_stride = inner_width_;
    input.k = keys.data;
    input.v = values.data;
    input.k_scale = keys.scale;
    input.k_scale_count = keys.scale_count;
    input.v_scale = values.scale ? values.scale[0] : 1.0f;
    input.out = rows + head * group * c.head_dim;
    input.out_stride = inner_width_;
    attention(input, arena.bytes(attention_scratch_bytes(input)));
    if (counts.saturated || counts.nonfinite) {
      const std::lock_guard lock(counts_mutex);
      counts_[static_cast<std::size_t>(walker)].saturated += counts.saturated;
      counts_[static_cast<std::size_t>(walker)].nonfinite += counts.nonfinite;
    }
  });
}

}  // namespace quantmap
