#include <algorithm>

#include "core/parallel.hpp"
#include "kernels/rms_norm/rms_norm.hpp"
#include "model/forward_parts.hpp"

namespace quantmap {

std::int64_t Forward::head_rows(std::int64_t vocab) {
  constexpr std::int64_t kBytes = std::int64_t{32} << 20;
  return std::clamp(kBytes / (vocab * 4) / 16 * 16, std::int64_t{16}, std::int64_t{64});
}

void Forward::run_head(const std::function<RowRange(std::int64_t)>& rows_of, const HeadVisitor& visit) {
  const ModelConfig& c = config();
  const std::string tensor = c.tied_embeddings ? kEmbedding : kHead;
  std::vector<int> everyone;
  for (std::size_t w = 0; w < walkers_.size(); ++w) everyone.push_back(static_cast<int>(w));
  Timer timer(*this, everyone);

  std::vector<float> exact, rounded;
  norm_weight(kFinalNorm, Compute::f32, exact);
  norm_weight(kFinalNorm, Compute::bf16, rounded);
  const auto read_input = [&](const Tile& tile, float* x) {
    const bool f32 = walkers_[static_cast<std::size_t>(tile.walker)].compute == Compute::f32;
    rms_norm(hidden_rows(tile), c.hidden_size, f32 ? exact.data() : rounded.data(),
             static_cast<float>(c.rms_norm_eps), tile.rows, c.hidden_size, x, c.hidden_size);
  };

  std::vector<LinearForm> forms;
  std::vector<LinearForm> keys;
  std::vector<std::size_t> weights_of;
  for (const Walker& walker : walkers_) {
    forms.push_back(walker_form(walker, kHead));
    const LinearForm key = weight_key(forms.back());
    const auto found = std::find(keys.begin(), keys.end(), key);
    weights_of.push_back(static_cast<std::size_t>(found - keys.begin()));
    if (found == keys.end()) keys.push_back(key);
  }
  std::vector<TensorRange> ranges(walkers_.size() * windows_.size());
  parallel_for(static_cast<std::int64_t>(ranges.size()), [&](std::int64_t task, int worker) {
    const std::size_t walker = static_cast<std::size_t>(task) / windows_.size();
    const std::size_t window = static_cast<std::size_t>(task) % windows_.size();
    const bool ranged = forms[walker].activation.needs_tensor_range();
    if (!ranged && !hook_) return;
    Arena arena(scratch_[static_cast<std::size_t>(worker)]);
    const std::int64_t step = head_rows(c.vocab_size);
    float* x = arena.floats(step * c.hidden_size);
    const auto length = static_cast<std::int64_t>(windows_[window].ids.size());
    for (std::int64_t begin = 0; begin < length; begin += step) {
      const Tile tile{static_cast<int>(walker), window, begin, std::min(step, length - begin)};
      read_input(tile, x);
      if (ranged)
        ranges[static_cast<std::size_t>(task)].merge(
            measure_range({x, static_cast<std::size_t>(tile.rows * c.hidden_size)}));
      if (hook_)
        hook_({Site::final_norm, LinearId::q, -1, tile.walker, windows_[window].index, begin, tile.rows, 0,
               c.hidden_size, c.hidden_size, x, c.hidden_size});
    }
  });

  struct Rows {
    std::size_t window;
    std::int64_t begin, count;
  };
  std::vector<Rows> tasks;
  for (std::size_t window = 0; window < windows_.size(); ++window) {
    const RowRange range = rows_of(windows_[window].index);
    const std::int64_t step = head_rows(c.vocab_size);
    for (std::int64_t begin = range.begin; begin < range.end; begin += step)
      tasks.push_back({window, begin, std::min(step, range.end - begin)});
  }
  if (tasks.empty()) return;  // only the final norm was asked for
  std::vector<LinearWeights> weights;
  for (const LinearForm& key : keys)
    weights.emplace_back(checkpoint_, tensor, c.vocab_size, c.hidden_size, false, key);
  parallel_for(static_cast<std::int64_t>(tasks.size()), [&](std::int64_t task, int worker) {
    const Rows& rows = tasks[static_cast<std::size_t>(task)];
    for (std::size_t w = 0; w < walkers_.size(); ++w) {
      const Timer::Task measured(timer, worker, static_cast<int>(w));
      Arena arena(scratch_[static_cast<std::size_t>(worker)]);
      float* reference = arena.floats(rows.count * c.vocab_size);
      float* own = arena.floats(rows.count * c.vocab_size);
      float* visitors = arena.floats(rows.count * c.vocab_size);
      float* logits = w == 0 ? reference : own;
      float* x = arena.floats(rows.count * c.hidden_size);
      float* partial = arena.floats(rows.count * kChunkRows);
      const Tile tile{static_cast<int>(w), rows.window, rows.begin, rows.count};
      read_input(tile, x);
      std::byte* operands = arena.bytes(activation_scratch_bytes(forms[w], rows.count, c.hidden_size));
      const ActivationTile input =
          prepare_activation(forms[w], rows.count, c.hidden_size, x,
                             &ranges[w * windows_.size() + rows.window], operands, nullptr);
      const LinearWeights& head = weights[weights_of[w]];
      for (std::int64_t chunk = 0; chunk < head.chunks(); ++chunk)
        head.multiply(chunk, input, logits + chunk * kChunkRows, c.vocab_size, partial);
      visit({static_cast<int>(w), worker, windows_[rows.window].index, rows.begin, rows.count, logits,
             visitors});
    }
  });
  checkpoint_.release(tensor + ".weight");
}

std::int64_t Forward::bytes_needed(const Checkpoint& checkpoint, const std::vector<Walker>& walkers,
                                   const PassLimits& limits, int threads) {
  const ModelConfig& c = checkpoint.config();
  const auto count = static_cast<std::int64_t>(walkers.size());
  std::int64_t state = count * limits.tokens * (c.hidden_size + inner_width(c)) * 4;
  state += limits.longest_window * c.head_dim * 4;  // rotary tables
  state += threads * std::max(layer_scratch_bytes(c, limits.longest_window), head_scratch_bytes(c));

  // The largest set of weights held at once: any choice of one step, or all choices of the head.
  std::int64_t weights = 0;
  for (int layer = 0; layer < c.layers; ++layer)
    for (const Walker& walker : walkers)
      for (const auto& set : {std::vector<LinearId>{LinearId::q, LinearId::k, LinearId::v},
                              {LinearId::o},
                              {LinearId::gate, LinearId::up},
                              {LinearId::down}}) {
        std::int64_t bytes = 0;
        for (const LinearId id : set) {
          const LinearShape shape = linear_shape(c, id);
          bytes += linear_weights_bytes_bound(shape.out, shape.in,
                                              walker_form(walker, linear_name(layer, id)), threads);
        }
        weights = std::max(weights, bytes);
      }
  std::vector<LinearForm> keys;
  std::int64_t head = 0;
  for (const Walker& walker : walkers) {
    const LinearForm key = weight_key(walker_form(walker, kHead));
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    keys.push_back(key);
    head += linear_weights_bytes_bound(c.vocab_size, c.hidden_size, key, threads);
  }
  return state + std::max(weights, head);
}

}  // namespace quantmap
