// A step of a layer: Linears that share an input, for all walkers. Those with the same weights go together,
// so that each choice of weights is read, quantized and packed once, and only one stands in memory at a time.
#include <algorithm>
#include <mutex>
#include <utility>

#include "core/parallel.hpp"
#include "core/simd.hpp"
#include "formats/bf16_array.hpp"
#include "kernels/rms_norm/rms_norm.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"
#include "model/forward_parts.hpp"

namespace quantmap {
namespace {

QUANTMAP_SIMD void add_to(float* to, const float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += values[i];
}

// Of one walker: do both Linears multiply the same operand?
bool same_operand(const LinearForm& a, const LinearForm& b) {
  return a.activation == b.activation && a.type == b.type && a.k_block == b.k_block;
}

}  // namespace

class Forward::LinearStep {
 public:
  LinearStep(Forward& forward, int layer, const LinearSet& set, const Step& step);
  void run();

 private:
  // Walkers with the same weights.
  struct Group {
    std::vector<LinearForm> key;  // [linear of the set]
    std::vector<int> members;
  };
  // A tile on its way through the step, with its worker's scratch.
  struct Work {
    const Tile& tile;
    const std::vector<LinearForm>& forms;       // [linear of the set]
    const std::vector<LinearWeights>& weights;  // [linear of the set]
    const TensorRange& range;                   // of the window's input
    const float* x = nullptr;                   // input [rows][in]
    float* first_y = nullptr;                   // [rows][kChunkRows], as the next two
    float* second_y = nullptr;
    float* partial = nullptr;
    std::byte* operands = nullptr;
    ActivationTile operand{};  // the input as Linear `operand_of` multiplies it
    std::size_t operand_of = SIZE_MAX;
    QuantCounts counts{};
  };

  void read_input(const Tile& tile, float* x);
  std::vector<TensorRange> measure_ranges(const Group& group);
  void run_group(const Group& group);
  void run_tile(Work& work, Arena& arena);
  const ActivationTile& operand_for(Work& work, std::size_t linear) const;
  void write_qkv(Work& work);
  void add_to_residual(Work& work);
  void write_inner(Work& work);
  void show(const Tile& tile, Site site, LinearId id, const float* data, std::int64_t stride,
            std::int64_t begin, std::int64_t cols, std::int64_t width) const;

  Compute compute_of(const Tile& tile) const {
    return f_.walkers_[static_cast<std::size_t>(tile.walker)].compute;
  }
  std::int64_t length(std::size_t window) const {
    return static_cast<std::int64_t>(f_.windows_[window].ids.size());
  }

  // Norm weights: as stored for f32, rounded for the others.
  struct Norm {
    std::vector<float> exact, rounded;
    const float* of(Compute compute) const { return compute == Compute::f32 ? exact.data() : rounded.data(); }
  };
  Norm read_norm(const std::string& name) const;

  Forward& f_;
  const ModelConfig& c_;
  const int layer_;
  const LinearSet& set_;
  const Step& step_;
  std::vector<std::vector<LinearForm>> forms_;  // [walker][linear of the set]
  std::vector<Group> groups_;
  Norm input_norm_, q_norm_, k_norm_;
};

Forward::LinearStep::LinearStep(Forward& forward, int layer, const LinearSet& set, const Step& step)
    : f_(forward),
      c_(forward.config()),
      layer_(layer),
      set_(set),
      step_(step),
      forms_(forward.walkers_.size()) {
  for (std::size_t w = 0; w < f_.walkers_.size(); ++w) {
    std::vector<LinearForm> key;
    for (const LinearId id : set_) {
      forms_[w].push_back(walker_form(f_.walkers_[w], linear_name(layer_, id)));
      key.push_back(weight_key(forms_[w].back()));
    }
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.key == key; });
    if (group == groups_.end()) group = groups_.insert(groups_.end(), {key, {}});
    group->members.push_back(static_cast<int>(w));
  }
  if (!step_.norm.empty()) input_norm_ = read_norm(step_.norm);
  if (step_.output == Step::qkv && c_.qk_norm) {
    q_norm_ = read_norm(attention_name(layer_) + ".q_norm");
    k_norm_ = read_norm(attention_name(layer_) + ".k_norm");
  }
}

Forward::LinearStep::Norm Forward::LinearStep::read_norm(const std::string& name) const {
  Norm norm;
  f_.norm_weight(name, Compute::f32, norm.exact);
  f_.norm_weight(name, Compute::bf16, norm.rounded);
  return norm;
}

void Forward::LinearStep::run() {
  for (const Group& group : groups_) run_group(group);
  for (const LinearId id : set_) f_.checkpoint_.release(linear_name(layer_, id) + ".weight");
}

void Forward::LinearStep::read_input(const Tile& tile, float* x) {
  if (!step_.norm.empty()) {
    rms_norm(f_.hidden_rows(tile), c_.hidden_size, input_norm_.of(compute_of(tile)),
             static_cast<float>(c_.rms_norm_eps), tile.rows, step_.in, x, step_.in);
    return;
  }
  const float* from = f_.inner_rows(tile);
  for (std::int64_t r = 0; r < tile.rows; ++r)
    std::copy(from + r * f_.inner_width_, from + r * f_.inner_width_ + step_.in, x + r * step_.in);
}

// [member][window]; a scale that spans the window needs its range before the first tile.
std::vector<TensorRange> Forward::LinearStep::measure_ranges(const Group& group) {
  const std::size_t windows = f_.windows_.size();
  std::vector<TensorRange> ranges(group.members.size() * windows);
  parallel_for(static_cast<std::int64_t>(ranges.size()), [&](std::int64_t task, int worker) {
    const int walker = group.members[static_cast<std::size_t>(task) / windows];
    const std::size_t window = static_cast<std::size_t>(task) % windows;
    const auto& forms = forms_[static_cast<std::size_t>(walker)];
    if (std::none_of(forms.begin(), forms.end(),
                     [](const LinearForm& form) { return form.activation.needs_tensor_range(); }))
      return;
    Arena arena(f_.scratch_[static_cast<std::size_t>(worker)]);
    float* x = arena.floats(kTileRows * step_.in);
    for (std::int64_t begin = 0; begin < length(window); begin += kTileRows) {
      const Tile tile{walker, window, begin, std::min(kTileRows, length(window) - begin)};
      read_input(tile, x);
      ranges[static_cast<std::size_t>(task)].merge(
          measure_range({x, static_cast<std::size_t>(tile.rows * step_.in)}));
    }
  });
  return ranges;
}

void Forward::LinearStep::run_group(const Group& group) {
  Timer timer(f_, group.members);
  std::vector<LinearWeights> weights;
  for (std::size_t i = 0; i < set_.size(); ++i) {
    const LinearShape shape = linear_shape(c_, set_[i]);
    weights.emplace_back(f_.checkpoint_, linear_name(layer_, set_[i]), shape.out, shape.in, shape.bias,
                         group.key[i]);
  }
  const std::vector<TensorRange> ranges = measure_ranges(group);

  std::vector<std::pair<Tile, const TensorRange*>> tiles;
  for (std::size_t member = 0; member < group.members.size(); ++member)
    for (std::size_t window = 0; window < f_.windows_.size(); ++window)
      for (std::int64_t begin = 0; begin < length(window); begin += kTileRows)
        tiles.emplace_back(
            Tile{group.members[member], window, begin, std::min(kTileRows, length(window) - begin)},
            &ranges[member * f_.windows_.size() + window]);
  std::mutex counts_mutex;
  parallel_for(static_cast<std::int64_t>(tiles.size()), [&](std::int64_t task, int worker) {
    const auto& [tile, range] = tiles[static_cast<std::size_t>(task)];
    const Timer::Task measured(timer, worker, tile.walker);
    Work work{tile, forms_[static_cast<std::size_t>(tile.walker)], weights, *range};
    Arena arena(f_.scratch_[static_cast<std::size_t>(worker)]);
    run_tile(work, arena);
    if (work.counts.saturated || work.counts.nonfinite) {
      const std::lock_guard lock(counts_mutex);
      f_.counts_[static_cast<std::size_t>(tile.walker)].saturated += work.counts.saturated;
      f_.counts_[static_cast<std::size_t>(tile.walker)].nonfinite += work.counts.nonfinite;
    }
  });
}

void Forward::LinearStep::run_tile(Work& work, Arena& arena) {
  const Tile& tile = work.tile;
  float* x = arena.floats(tile.rows * step_.in);
  read_input(tile, x);
  work.x = x;
  if (f_.hook_) show(tile, Site::linear_input, set_[0], x, step_.in, 0, step_.in, step_.in);
  work.first_y = arena.floats(tile.rows * kChunkRows);
  work.second_y = arena.floats(tile.rows * kChunkRows);
  work.partial = arena.floats(tile.rows * kChunkRows);
  std::int64_t room = 0;
  for (const LinearForm& form : work.forms)
    room = std::max(room, activation_scratch_bytes(form, tile.rows, step_.in));
  work.operands = arena.bytes(room);
  switch (step_.output) {
    case Step::qkv:
      return write_qkv(work);
    case Step::residual:
      return add_to_residual(work);
    case Step::inner:
      return write_inner(work);
  }
}

// The input as this Linear multiplies it; prepared anew only where it differs from the one before.
const ActivationTile& Forward::LinearStep::operand_for(Work& work, std::size_t linear) const {
  if (work.operand_of == SIZE_MAX || !same_operand(work.forms[linear], work.forms[work.operand_of])) {
    work.operand = prepare_activation(work.forms[linear], work.tile.rows, step_.in, work.x, &work.range,
                                      work.operands, &work.counts);
    work.operand_of = linear;
  }
  return work.operand;
}

void Forward::LinearStep::show(const Tile& tile, Site site, LinearId id, const float* data,
                               std::int64_t stride, std::int64_t begin, std::int64_t cols,
                               std::int64_t width) const {
  f_.hook_({site, id, layer_, tile.walker, f_.windows_[tile.window].index, tile.row_begin, tile.rows, begin,
            cols, width, data, stride});
}

// q, k and v side by side in the inner values; q and k normed and rotated.
void Forward::LinearStep::write_qkv(Work& work) {
  const Tile& tile = work.tile;
  float* to = f_.inner_rows(tile);
  const std::int64_t stride = f_.inner_width_;
  std::int64_t column = 0;
  for (std::size_t i = 0; i < set_.size(); ++i) {
    const LinearWeights& weights = work.weights[i];
    const ActivationTile& input = operand_for(work, i);
    for (std::int64_t chunk = 0; chunk < weights.chunks(); ++chunk)
      weights.multiply(chunk, input, to + column + chunk * kChunkRows, stride, work.partial);
    if (f_.hook_)
      show(tile, Site::linear_output, set_[i], to + column, stride, 0, weights.out(), weights.out());
    column += weights.out();
  }
  float* keys = to + query_width(c_);
  if (c_.qk_norm) {
    const float* q_weight = q_norm_.of(compute_of(tile));
    const float* k_weight = k_norm_.of(compute_of(tile));
    const auto eps = static_cast<float>(c_.rms_norm_eps);
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      float* q = to + r * stride;
      float* k = keys + r * stride;
      rms_norm(q, c_.head_dim, q_weight, eps, c_.heads, c_.head_dim, q, c_.head_dim);
      rms_norm(k, c_.head_dim, k_weight, eps, c_.kv_heads, c_.head_dim, k, c_.head_dim);
    }
  }
  const PassWindow& window = f_.windows_[tile.window];
  const std::int64_t last = tile.row_begin + tile.rows;
  for (std::int64_t row = tile.row_begin, end = 0; row < last; row = end) {
    end = std::min(last, window.run_end(row));
    const std::int64_t at = window.position(row) * (c_.head_dim / 2), skip = (row - tile.row_begin) * stride;
    const float* cosines = f_.rope_.cosines.data() + at;
    const float* sines = f_.rope_.sines.data() + at;
    rope(to + skip, stride, end - row, c_.heads, c_.head_dim, cosines, sines);
    rope(keys + skip, stride, end - row, c_.kv_heads, c_.head_dim, cosines, sines);
  }
  if (f_.hook_) {
    const std::int64_t width = kv_width(c_);
    show(tile, Site::query, LinearId::q, to, stride, 0, query_width(c_), query_width(c_));
    show(tile, Site::key, LinearId::k, keys, stride, 0, width, width);
    show(tile, Site::value, LinearId::v, keys + width, stride, 0, width, width);
  }
}

void Forward::LinearStep::add_to_residual(Work& work) {
  const Tile& tile = work.tile;
  const LinearWeights& weights = work.weights[0];
  float* to = f_.hidden_rows(tile);
  const ActivationTile& input = operand_for(work, 0);
  for (std::int64_t chunk = 0; chunk < weights.chunks(); ++chunk) {
    const std::int64_t width = weights.chunk_width(chunk), begin = chunk * kChunkRows;
    weights.multiply(chunk, input, work.first_y, width, work.partial);
    if (f_.hook_) show(tile, Site::linear_output, set_[0], work.first_y, width, begin, width, weights.out());
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      float* row = to + r * c_.hidden_size + begin;
      add_to(row, work.first_y + r * width, width);
      if (compute_of(tile) == Compute::bf16_serve) round_array_to_bf16(row, width, row);
    }
  }
}

// Gate and up chunk by chunk, so that they meet while they are in the cache. Their inputs differ only where a
// recipe gives them different activation formats: then the whole gate comes first.
void Forward::LinearStep::write_inner(Work& work) {
  const Tile& tile = work.tile;
  const LinearWeights &gates = work.weights[0], &ups = work.weights[1];
  float* to = f_.inner_rows(tile);
  const bool shared = same_operand(work.forms[0], work.forms[1]);
  if (!shared) {
    const ActivationTile& input = operand_for(work, 0);
    for (std::int64_t chunk = 0; chunk < gates.chunks(); ++chunk)
      gates.multiply(chunk, input, to + chunk * kChunkRows, f_.inner_width_, work.partial);
  }
  const ActivationTile& input = operand_for(work, 1);
  for (std::int64_t chunk = 0; chunk < ups.chunks(); ++chunk) {
    const std::int64_t width = ups.chunk_width(chunk), begin = chunk * kChunkRows;
    const float* gate = to + begin;
    std::int64_t gate_stride = f_.inner_width_;
    if (shared) {
      gates.multiply(chunk, input, work.first_y, width, work.partial);
      gate = work.first_y;
      gate_stride = width;
    }
    ups.multiply(chunk, input, work.second_y, width, work.partial);
    if (f_.hook_) {
      show(tile, Site::linear_output, set_[0], gate, gate_stride, begin, width, gates.out());
      show(tile, Site::linear_output, set_[1], work.second_y, width, begin, width, ups.out());
    }
    swiglu(gate, gate_stride, work.second_y, width, tile.rows, width, to + begin, f_.inner_width_);
  }
}

void Forward::run_linear_set(int layer, const LinearSet& set, const Step& step) {
  LinearStep(*this, layer, set, step).run();
}

}  // namespace quantmap
