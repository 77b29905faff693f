// Error tables of attention: keys and values as the cache holds them, the weights, the output.
#include <algorithm>
#include <utility>

#include "core/parallel.hpp"
#include "kernels/attention_divergence/attention_divergence.hpp"
#include "model/head_attention.hpp"
#include "sweep/error_tables.hpp"
#include "sweep/quantize_window.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kWholeWindow = std::int64_t{1} << 40;

struct CacheRanges {
  std::vector<TensorRange> key, value;  // by window, over all heads
};

TensorRange range_of(const LayerTensors& tensors, LayerSlot slot, int walker, std::size_t window) {
  return measure_range({tensors.rows(slot, walker, window),
                        static_cast<std::size_t>(tensors.length(window) * tensors.width(slot))});
}

CacheRanges cache_ranges(const LayerTensors& tensors, int walker, const KvChoice& choice) {
  CacheRanges ranges{std::vector<TensorRange>(tensors.windows()),
                     std::vector<TensorRange>(tensors.windows())};
  parallel_for(static_cast<std::int64_t>(tensors.windows()), [&](std::int64_t task, int) {
    const auto window = static_cast<std::size_t>(task);
    if (choice.key.needs_tensor_range())
      ranges.key[window] = range_of(tensors, LayerSlot::key, walker, window);
    if (choice.value.needs_tensor_range())
      ranges.value[window] = range_of(tensors, LayerSlot::value, walker, window);
  });
  return ranges;
}

// A walker's tensors through a cache.
struct Pass {
  KvChoice choice;
  int source = 0;
  CacheRanges ranges;
};

AttentionInput head_input(const ModelConfig& c, int layer, const LayerTensors& tensors, const Pass& pass,
                          Compute compute, std::size_t window, std::int64_t head, Arena& arena) {
  const std::int64_t group = c.heads / c.kv_heads;
  HeadRows rows;
  rows.tokens = tensors.length(window);
  rows.group = group;
  rows.head_dim = c.head_dim;
  rows.window = c.window[static_cast<std::size_t>(layer)];
  rows.q = tensors.rows(LayerSlot::query, pass.source, window) + head * group * c.head_dim;
  rows.q_stride = query_width(c);
  rows.k = tensors.rows(LayerSlot::key, pass.source, window) + head * c.head_dim;
  rows.v = tensors.rows(LayerSlot::value, pass.source, window) + head * c.head_dim;
  rows.kv_stride = kv_width(c);
  rows.key_range = &pass.ranges.key[window];
  rows.value_range = &pass.ranges.value[window];
  QuantCounts counts;  // they are the keys' and values' own
  return prepare_head(rows, pass.choice, compute, arena, &counts);
}

}  // namespace

void ErrorTables::measure_cache(int layer, TensorKind kind, const LayerTensors& tensors) {
  const LayerSlot slot = kind == TensorKind::key ? LayerSlot::key : LayerSlot::value;
  const std::int64_t width = tensors.width(slot), dim = config_.head_dim;
  const auto spec_of = [&](std::size_t w) {
    const KvChoice choice = walker_cache(walkers_[w], layer);
    return kind == TensorKind::key ? choice.key : choice.value;
  };
  std::vector<FormatUse> uses;
  for (std::size_t w = 1; w < walkers_.size(); ++w)
    for (const ErrorScope scope : {ErrorScope::local, ErrorScope::inherited, ErrorScope::total}) {
      const int walker = static_cast<int>(w);
      const Key key{walker, layer, kAttention, kind, scope};
      if (!wants(key)) continue;
      const QuantSpec spec = spec_of(scope == ErrorScope::inherited ? 0 : w);
      const int source = scope == ErrorScope::local ? 0 : walker;
      add_use(uses, spec, source, key);
    }
  std::vector<Comparison> comparisons;
  for (const FormatUse& use : uses)
    comparisons.push_back({use.keys,
                           [&tensors, slot, width, dim, spec = use.spec, source = use.source](
                               const Tile& tile, Arena& arena, QuantCounts& counts) -> const float* {
                             const float* x = tensors.rows(slot, source, tile.window);
                             if (spec.is_reference()) return x;
                             float* y = arena.floats(tile.rows * width);
                             quantize_window(spec, tile.rows, width, dim, x, y, &counts);
                             return y;
                           }});
  compare(tensors, {slot, dim, kWholeWindow, {}}, comparisons);
}

void ErrorTables::measure_attention_output(int layer, const LayerTensors& tensors) {
  const std::int64_t width = query_width(config_), group = config_.heads / config_.kv_heads;
  const KvChoice reference = walker_cache(walkers_[0], layer);
  std::vector<Comparison> comparisons;
  const auto keep = [&](const Key& key, int walker) {
    comparisons.push_back({{key}, [&tensors, walker](const Tile& tile, Arena&, QuantCounts&) -> const float* {
                             return tensors.rows(LayerSlot::o_input, walker, tile.window);
                           }});
  };
  std::vector<std::pair<KvChoice, std::size_t>> local;  // the comparison of each cache
  for (std::size_t w = 1; w < walkers_.size(); ++w)
    for (const ErrorScope scope : {ErrorScope::local, ErrorScope::inherited, ErrorScope::total}) {
      const int walker = static_cast<int>(w);
      const Key key{walker, layer, kAttention, TensorKind::attention_output, scope};
      if (!wants(key)) continue;
      const KvChoice own = walker_cache(walkers_[w], layer);
      if (scope == ErrorScope::total || (scope == ErrorScope::inherited && own == reference)) {
        keep(key, walker);
        continue;
      }
      if (scope == ErrorScope::local && own == reference) {
        keep(key, 0);
        continue;
      }
      if (scope == ErrorScope::local) {
        const auto same =
            std::find_if(local.begin(), local.end(), [&](const auto& one) { return one.first == own; });
        if (same != local.end()) {
          comparisons[same->second].keys.push_back(key);
          continue;
        }
        local.emplace_back(own, comparisons.size());
      }
      Pass pass;
      pass.choice = scope == ErrorScope::local ? own : reference;
      pass.source = scope == ErrorScope::local ? 0 : walker;
      pass.ranges = cache_ranges(tensors, pass.source, pass.choice);
      comparisons.push_back({{key},
                             [this, layer, &tensors, width, group, pass](const Tile& tile, Arena& arena,
                                                                         QuantCounts&) -> const float* {
                               float* y = arena.floats(tile.rows * width);
                               for (std::int64_t head = 0; head < config_.kv_heads; ++head) {
                                 Arena own_part = arena;  // each head's pieces in the same place
                                 AttentionInput input =
                                     head_input(config_, layer, tensors, pass, walkers_[0].compute,
                                                tile.window, head, own_part);
                                 input.out = y + head * group * config_.head_dim;
                                 input.out_stride = width;
                                 attention(input, own_part.bytes(attention_scratch_bytes(input)));
                               }
                               return y;
                             }});
    }
  compare(tensors, {LayerSlot::o_input, width, kWholeWindow, {}}, comparisons);
}

void ErrorTables::measure_attention_weights(int layer, const LayerTensors& tensors) {
  const KvChoice reference = walker_cache(walkers_[0], layer);
  struct Use {
    Pass pass;
    std::vector<Key> keys;
  };
  std::vector<Use> uses;
  for (std::size_t w = 1; w < walkers_.size(); ++w)
    for (const ErrorScope scope : {ErrorScope::local, ErrorScope::inherited, ErrorScope::total}) {
      const int walker = static_cast<int>(w);
      const Key key{walker, layer, kAttention, TensorKind::attention_weights, scope};
      if (!wants(key)) continue;
      const KvChoice choice = scope == ErrorScope::inherited ? reference : walker_cache(walkers_[w], layer);
      const int source = scope == ErrorScope::local ? 0 : walker;
      auto use = std::find_if(uses.begin(), uses.end(), [&](const Use& u) {
        return u.pass.choice == choice && u.pass.source == source;
      });
      if (use == uses.end())
        use = uses.insert(uses.end(), Use{Pass{choice, source, cache_ranges(tensors, source, choice)}, {}});
      use->keys.push_back(key);
    }
  if (uses.empty()) return;
  const Pass own{reference, 0, cache_ranges(tensors, 0, reference)};
  const std::int64_t group = config_.heads / config_.kv_heads;
  const auto heads = static_cast<std::size_t>(config_.kv_heads);
  std::vector<DivergenceSums> parts(uses.size() * tensors.windows() * heads);  // [window][head][use]
  parallel_for(static_cast<std::int64_t>(tensors.windows() * heads), [&](std::int64_t task, int worker) {
    const std::size_t window = static_cast<std::size_t>(task) / heads;
    const std::int64_t head = task % config_.kv_heads, tokens = tensors.length(window);
    Arena arena(scratch_[static_cast<std::size_t>(worker)]);
    auto* kl = reinterpret_cast<double*>(arena.bytes(tokens * group * 8));
    const Compute compute = walkers_[0].compute;
    const AttentionInput base = head_input(config_, layer, tensors, own, compute, window, head, arena);
    for (std::size_t u = 0; u < uses.size(); ++u) {
      Arena others = arena;
      const AttentionInput other =
          head_input(config_, layer, tensors, uses[u].pass, compute, window, head, others);
      attention_divergence(base, other, others.bytes(attention_divergence_scratch_bytes(base, other)), kl);
      DivergenceSums& part = parts[static_cast<std::size_t>(task) * uses.size() + u];
      for (std::int64_t i = 0; i < tokens * group; ++i) part.add(kl[i]);
    }
  });
  for (std::size_t at = 0; at < parts.size(); ++at)
    for (const Key& key : uses[at % uses.size()].keys) divergences_[key].merge(parts[at]);
}

}  // namespace quantmap
