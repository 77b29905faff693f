#include <mutex>

#include "core/parallel.hpp"
#include "model/forward_parts.hpp"
#include "model/head_attention.hpp"

namespace quantmap {
KvChoice walker_cache(const Walker& walker, int layer) {
  if (walker.scheme) return walker.scheme->cache(layer);
  static const QuantSpec reference = parse_quant_spec("bf16", Role::kv);
  return {reference, reference};
}

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
    const auto length = static_cast<std::int64_t>(windows_[window].ids.size());
    float* rows = inner_rows({walker, window, 0, length});
    Arena arena(scratch_[static_cast<std::size_t>(worker)]);
    const Ranges& range = ranges[static_cast<std::size_t>(walker) * windows_.size() + window];
    QuantCounts counts;
    const std::int64_t group = c.heads / c.kv_heads;
    HeadRows input_rows;
    input_rows.tokens = length;
    input_rows.group = group;
    input_rows.head_dim = c.head_dim;
    input_rows.window = c.window[static_cast<std::size_t>(layer)];
    input_rows.q = rows + head * group * c.head_dim;
    input_rows.k = rows + keys_at + head * c.head_dim;
    input_rows.v = rows + values_at + head * c.head_dim;
    input_rows.q_stride = input_rows.kv_stride = inner_width_;
    input_rows.key_range = &range.key;
    input_rows.value_range = &range.value;
    AttentionInput input = prepare_head(input_rows, choice, compute, arena, &counts);
    input.out = rows + head * group * c.head_dim;
    input.out_stride = inner_width_;
    if (windows_[window].branches.empty())
      attention(input, arena.bytes(attention_scratch_bytes(input)));
    else
      attend_branches(windows_[window].prefix, windows_[window].branches, input, arena);
    if (counts.saturated || counts.nonfinite) {
      const std::lock_guard lock(counts_mutex);
      counts_[static_cast<std::size_t>(walker)].saturated += counts.saturated;
      counts_[static_cast<std::size_t>(walker)].nonfinite += counts.nonfinite;
    }
  });
}

}  // namespace quantmap
