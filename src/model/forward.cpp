#include "model/forward.hpp"

#include <algorithm>
#include <mutex>

#include "core/aligned.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/simd.hpp"
#include "formats/bf16_array.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/rms_norm/rms_norm.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"
#include "model/forward_parts.hpp"

namespace quantmap {
namespace {

QUANTMAP_SIMD void add_to(float* to, const float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += values[i];
}

// Where a set of Linears gets its input and what becomes of its output.
enum class Output { qkv, residual, inner };

}  // namespace

std::int64_t inner_width(const ModelConfig& c) {
  return std::max(query_width(c) + 2 * kv_width(c), c.intermediate_size);
}

struct Forward::Step {
  std::string norm;  // name of the norm that makes the input from the residual stream; empty: inner values
  std::int64_t in = 0;
  Output output = Output::qkv;
};

Arena::Arena(std::vector<std::byte>& memory) : next_(memory.data()), end_(memory.data() + memory.size()) {
  const auto misaligned = reinterpret_cast<std::uintptr_t>(next_) % kAlignment;
  if (misaligned) next_ += kAlignment - misaligned;
}

std::byte* Arena::bytes(std::int64_t count) {
  std::byte* piece = next_;
  next_ += aligned_bytes(count);
  if (next_ > end_) fail("forward pass", "", "scratch is smaller than a step needs");
  return piece;
}

Forward::Timer::Timer(Forward& forward, std::vector<int> walkers)
    : forward_(forward),
      walkers_(std::move(walkers)),
      begin_(std::chrono::steady_clock::now()),
      busy_(static_cast<std::size_t>(thread_count()), std::vector<double>(forward.walkers_.size(), 0.0)) {}

Forward::Timer::~Timer() {
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  std::vector<double> share(forward_.walkers_.size(), 0.0);
  double total = 0;
  for (const auto& worker : busy_)
    for (const int walker : walkers_) {
      share[static_cast<std::size_t>(walker)] += worker[static_cast<std::size_t>(walker)];
      total += worker[static_cast<std::size_t>(walker)];
    }
  for (const int walker : walkers_)
    forward_.seconds_[static_cast<std::size_t>(walker)] +=
        total > 0 ? wall * share[static_cast<std::size_t>(walker)] / total
                  : wall / static_cast<double>(walkers_.size());
}

Forward::Timer::Task::Task(Timer& timer, int worker, int walker)
    : busy_(timer.busy_[static_cast<std::size_t>(worker)][static_cast<std::size_t>(walker)]),
      begin_(std::chrono::steady_clock::now()) {}

Forward::Timer::Task::~Task() {
  busy_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

LinearForm weight_key(LinearForm form) {
  form.activation = QuantSpec{};
  return form;
}

LinearForm walker_form(const Walker& walker, const std::string& module) {
  static const QuantSpec reference = parse_quant_spec("bf16", Role::weight);
  if (!walker.scheme) return linear_form(reference, reference, walker.compute);
  const LinearChoice choice = walker.scheme->linear(module);
  return linear_form(choice.weight, choice.activation, walker.compute);
}

std::int64_t layer_scratch_bytes(const ModelConfig& c, std::int64_t longest_window) {
  const std::int64_t widest = std::max({c.hidden_size, query_width(c), c.intermediate_size});
  // Input tile, its operand (values, k-block copy, decoded values, scales), two output chunks, a partial sum.
  const std::int64_t linear = kTileRows * widest * 4 + 3 * (kTileRows * widest * 4 + kTileRows * widest) +
                              3 * kTileRows * kChunkRows * 4 + 1024;
  std::int64_t products = 0;  // either type may be the larger: BF16 keeps probabilities apart from scores
  for (const OperandType type : {OperandType::f32, OperandType::bf16}) {
    AttentionInput input;
    input.type = type;
    input.tokens = longest_window;
    input.group = c.heads / c.kv_heads;
    input.head_dim = c.head_dim;
    products = std::max(products, attention_scratch_bytes(input));
  }
  // Gathered keys or values, both operands, scales.
  const std::int64_t cache = longest_window * (c.head_dim * 4 * 3 + 4 * (1 + c.head_dim)) + 1024;
  return std::max(linear, products + cache) + 4096;
}

std::int64_t head_scratch_bytes(const ModelConfig& c) {
  const std::int64_t rows = Forward::head_rows(c.vocab_size);
  return 3 * rows * c.vocab_size * 4 + rows * c.hidden_size * 24 + rows * kChunkRows * 4 + 8192;
}

Forward::Forward(const Checkpoint& checkpoint, std::vector<Walker> walkers, const PassLimits& limits)
    : checkpoint_(checkpoint),
      walkers_(std::move(walkers)),
      limits_(limits),
      inner_width_(inner_width(checkpoint.config())),
      seconds_(walkers_.size(), 0.0),
      counts_(walkers_.size()) {
  const ModelConfig& c = config();
  rope_ = rope_table(c.rope, c.head_dim, limits.longest_window);
  hidden_.resize(walkers_.size());
  inner_.resize(walkers_.size());
  for (std::size_t w = 0; w < walkers_.size(); ++w) {
    hidden_[w].resize(static_cast<std::size_t>(limits.tokens * c.hidden_size));
    inner_[w].resize(static_cast<std::size_t>(limits.tokens * inner_width_));
  }
  const std::int64_t scratch = std::max(layer_scratch_bytes(c, limits.longest_window), head_scratch_bytes(c));
  scratch_.resize(static_cast<std::size_t>(thread_count()));
  for (auto& memory : scratch_) memory.resize(static_cast<std::size_t>(scratch));
}

Forward::~Forward() = default;

const ModelConfig& Forward::config() const { return checkpoint_.config(); }

const float* Forward::hidden(int walker, std::size_t window) const {
  return hidden_[static_cast<std::size_t>(walker)].data() + offset_[window] * config().hidden_size;
}

float* Forward::hidden_rows(const Tile& tile) {
  return hidden_[static_cast<std::size_t>(tile.walker)].data() +
         (offset_[tile.window] + tile.row_begin) * config().hidden_size;
}

float* Forward::inner_rows(const Tile& tile) {
  return inner_[static_cast<std::size_t>(tile.walker)].data() +
         (offset_[tile.window] + tile.row_begin) * inner_width_;
}

const float* Forward::norm_weight(const std::string& name, Compute compute,
                                  std::vector<float>& storage) const {
  const std::string tensor = name + ".weight";
  const TensorEntry* entry = checkpoint_.find(tensor);
  if (!entry) fail_input("checkpoint", checkpoint_.path().string(), "no tensor " + tensor);
  storage.resize(static_cast<std::size_t>(entry->shape.at(0)));
  checkpoint_.read(tensor, 0, 1, storage.data());
  if (compute != Compute::f32) round_array_to_bf16(storage.data(), entry->shape[0], storage.data());
  return storage.data();
}

void Forward::start(std::vector<PassWindow> windows) {
  windows_ = std::move(windows);
  offset_.clear();
  std::int64_t tokens = 0;
  for (const PassWindow& window : windows_) {
    offset_.push_back(tokens);
    const auto length = static_cast<std::int64_t>(window.ids.size());
    tokens += length;
    if (length > limits_.longest_window) fail("forward pass", "", "a window is longer than the pass allows");
    for (const std::int32_t id : window.ids)
      if (id < 0 || id >= config().vocab_size)
        fail_input("token ids", "", "id out of range", "0 to " + std::to_string(config().vocab_size - 1),
                   std::to_string(id));
  }
  if (tokens > limits_.tokens) fail("forward pass", "", "more tokens than the pass allows");

  std::vector<int> everyone;
  for (std::size_t w = 0; w < walkers_.size(); ++w) everyone.push_back(static_cast<int>(w));
  const Timer timer(*this, everyone);
  const std::int64_t width = config().hidden_size;
  const std::string embedding = std::string(kEmbedding) + ".weight";
  parallel_for(static_cast<std::int64_t>(windows_.size()), [&](std::int64_t i, int) {
    const auto window = static_cast<std::size_t>(i);
    const auto& ids = windows_[window].ids;
    for (std::size_t t = 0; t < ids.size(); ++t) {
      const std::size_t at = static_cast<std::size_t>(offset_[window] + static_cast<std::int64_t>(t)) *
                             static_cast<std::size_t>(width);
      float* first = hidden_[0].data() + at;
      checkpoint_.read(embedding, ids[t], ids[t] + 1, first);
      for (std::size_t w = 1; w < walkers_.size(); ++w) {
        std::copy(first, first + width, hidden_[w].data() + at);
        if (walkers_[w].compute != Compute::f32) round_array_to_bf16(first, width, hidden_[w].data() + at);
      }
      if (walkers_[0].compute != Compute::f32) round_array_to_bf16(first, width, first);
    }
    if (!hook_) return;
    for (std::size_t w = 0; w < walkers_.size(); ++w)
      hook_({Site::embedding, LinearId::q, -1, static_cast<int>(w), windows_[window].index, 0,
             static_cast<std::int64_t>(ids.size()), 0, width, width, hidden(static_cast<int>(w), window),
             width});
  });
}

void Forward::run_layer(int layer) {
  const ModelConfig& c = config();
  const std::string name = layer_name(layer);
  run_linear_set(layer, {LinearId::q, LinearId::k, LinearId::v},
                 {name + ".input_layernorm", c.hidden_size, Output::qkv});
  run_attention(layer);
  run_linear_set(layer, {LinearId::o}, {"", query_width(c), Output::residual});
  run_linear_set(layer, {LinearId::gate, LinearId::up},
                 {name + ".post_attention_layernorm", c.hidden_size, Output::inner});
  run_linear_set(layer, {LinearId::down}, {"", c.intermediate_size, Output::residual});
  if (!hook_) return;
  for (std::size_t w = 0; w < walkers_.size(); ++w)
    for (std::size_t i = 0; i < windows_.size(); ++i)
      hook_({Site::layer_output, LinearId::q, layer, static_cast<int>(w), windows_[i].index, 0,
             static_cast<std::int64_t>(windows_[i].ids.size()), 0, c.hidden_size, c.hidden_size,
             hidden(static_cast<int>(w), i), c.hidden_size});
}

void Forward::run_linear_set(int layer, const LinearSet& set, const Step& step) {
  const ModelConfig& c = config();
  // Walkers with the same weights go together.
  std::vector<std::vector<LinearForm>> forms(walkers_.size());  // [walker][linear of the set]
  std::vector<std::pair<std::vector<LinearForm>, std::vector<int>>> groups;
  for (std::size_t w = 0; w < walkers_.size(); ++w) {
    std::vector<LinearForm> key;
    for (const LinearId id : set) {
      forms[w].push_back(walker_form(walkers_[w], linear_name(layer, id)));
      key.push_back(weight_key(forms[w].back()));
    }
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == key; });
    if (group == groups.end()) group = groups.insert(groups.end(), {key, {}});
    group->second.push_back(static_cast<int>(w));
  }

  // Norm weights: as stored for f32, rounded for the others.
  std::vector<float> exact, rounded;
  if (!step.norm.empty()) {
    norm_weight(step.norm, Compute::f32, exact);
    norm_weight(step.norm, Compute::bf16, rounded);
  }
  std::vector<float> q_norm[2], k_norm[2];  // [0]: rounded, [1]: exact
  if (step.output == Output::qkv && c.qk_norm)
    for (int i = 0; i < 2; ++i) {
      const Compute compute = i == 1 ? Compute::f32 : Compute::bf16;
      norm_weight(attention_name(layer) + ".q_norm", compute, q_norm[i]);
      norm_weight(attention_name(layer) + ".k_norm", compute, k_norm[i]);
    }
  const auto read_input = [&](const Tile& tile, float* x) {
    const bool f32 = walkers_[static_cast<std::size_t>(tile.walker)].compute == Compute::f32;
    if (!step.norm.empty()) {
      rms_norm(hidden_rows(tile), c.hidden_size, f32 ? exact.data() : rounded.data(),
               static_cast<float>(c.rms_norm_eps), tile.rows, step.in, x, step.in);
      return;
    }
    const float* from = inner_rows(tile);
    for (std::int64_t r = 0; r < tile.rows; ++r)
      std::copy(from + r * inner_width_, from + r * inner_width_ + step.in, x + r * step.in);
  };

  for (const auto& [key, members] : groups) {
    Timer timer(*this, members);
    std::vector<LinearWeights> weights;
    for (std::size_t i = 0; i < set.size(); ++i) {
      const LinearShape shape = linear_shape(c, set[i]);
      weights.emplace_back(checkpoint_, linear_name(layer, set[i]), shape.out, shape.in, shape.bias, key[i]);
      ++distinct_weights_;
    }

    // A scale that spans the window needs its range first.
    std::vector<std::vector<TensorRange>> ranges(members.size(), std::vector<TensorRange>(windows_.size()));
    parallel_for(
        static_cast<std::int64_t>(members.size() * windows_.size()), [&](std::int64_t task, int worker) {
          const std::size_t member = static_cast<std::size_t>(task) / windows_.size();
          const std::size_t window = static_cast<std::size_t>(task) % windows_.size();
          const auto& mine = forms[static_cast<std::size_t>(members[member])];
          if (std::none_of(mine.begin(), mine.end(),
                           [](const LinearForm& f) { return f.activation.needs_tensor_range(); }))
            return;
          Arena arena(scratch_[static_cast<std::size_t>(worker)]);
          float* x = arena.floats(kTileRows * step.in);
          const auto length = static_cast<std::int64_t>(windows_[window].ids.size());
          for (std::int64_t begin = 0; begin < length; begin += kTileRows) {
            const Tile tile{members[member], window, begin, std::min(kTileRows, length - begin)};
            read_input(tile, x);
            ranges[member][window].merge(measure_range({x, static_cast<std::size_t>(tile.rows * step.in)}));
          }
        });

    std::vector<std::pair<std::size_t, Tile>> tiles;  // with the member's index
    for (std::size_t member = 0; member < members.size(); ++member)
      for (std::size_t window = 0; window < windows_.size(); ++window) {
        const auto length = static_cast<std::int64_t>(windows_[window].ids.size());
        for (std::int64_t begin = 0; begin < length; begin += kTileRows)
          tiles.emplace_back(member,
                             Tile{members[member], window, begin, std::min(kTileRows, length - begin)});
      }
    std::mutex counts_mutex;
    parallel_for(static_cast<std::int64_t>(tiles.size()), [&](std::int64_t task, int worker) {
      const auto& [member, tile] = tiles[static_cast<std::size_t>(task)];
      const Timer::Task measured(timer, worker, tile.walker);
      const Walker& walker = walkers_[static_cast<std::size_t>(tile.walker)];
      const auto& mine = forms[static_cast<std::size_t>(tile.walker)];
      Arena arena(scratch_[static_cast<std::size_t>(worker)]);
      float* x = arena.floats(tile.rows * step.in);
      read_input(tile, x);
      const auto view = [&](Site site, LinearId id, const float* data, std::int64_t stride,
                            std::int64_t begin, std::int64_t cols, std::int64_t width) {
        hook_({site, id, layer, tile.walker, windows_[tile.window].index, tile.row_begin, tile.rows, begin,
               cols, width, data, stride});
      };
      if (hook_) view(Site::linear_input, set[0], x, step.in, 0, step.in, step.in);
      float* chunk_y = arena.floats(tile.rows * kChunkRows);
      float* second_y = arena.floats(tile.rows * kChunkRows);
      float* partial = arena.floats(tile.rows * kChunkRows);
      std::int64_t operand_room = 0;
      for (const LinearForm& form : mine)
        operand_room = std::max(operand_room, activation_scratch_bytes(form, tile.rows, step.in));
      std::byte* operands = arena.bytes(operand_room);
      QuantCounts counts;
      ActivationTile prepared;
      std::size_t prepared_for = set.size();
      const auto input_of = [&](std::size_t i) -> const ActivationTile& {
        const auto same = [&](std::size_t j) {
          return mine[i].activation == mine[j].activation && mine[i].type == mine[j].type &&
                 mine[i].k_block == mine[j].k_block;
        };
        if (prepared_for == set.size() || !same(prepared_for)) {
          prepared = prepare_activation(mine[i], tile.rows, step.in, x, &ranges[member][tile.window],
                                        operands, &counts);
          prepared_for = i;
        }
        return prepared;
      };

      switch (step.output) {
        case Output::qkv: {
          float* to = inner_rows(tile);
          std::int64_t column = 0;
          for (std::size_t i = 0; i < set.size(); ++i) {
            const ActivationTile& input = input_of(i);
            for (std::int64_t chunk = 0; chunk < weights[i].chunks(); ++chunk)
              weights[i].multiply(chunk, input, to + column + chunk * kChunkRows, inner_width_, partial);
            if (hook_)
              view(Site::linear_output, set[i], to + column, inner_width_, 0, weights[i].out(),
                   weights[i].out());
            column += weights[i].out();
          }
          float* keys = to + query_width(c);
          if (c.qk_norm) {
            const int which = walker.compute == Compute::f32 ? 1 : 0;
            const auto eps = static_cast<float>(c.rms_norm_eps);
            for (std::int64_t r = 0; r < tile.rows; ++r) {
              float* q = to + r * inner_width_;
              float* k = keys + r * inner_width_;
              rms_norm(q, c.head_dim, q_norm[which].data(), eps, c.heads, c.head_dim, q, c.head_dim);
              rms_norm(k, c.head_dim, k_norm[which].data(), eps, c.kv_heads, c.head_dim, k, c.head_dim);
            }
          }
          const std::int64_t at = tile.row_begin * (c.head_dim / 2);
          rope(to, inner_width_, tile.rows, c.heads, c.head_dim, rope_.cosines.data() + at,
               rope_.sines.data() + at);
          rope(keys, inner_width_, tile.rows, c.kv_heads, c.head_dim, rope_.cosines.data() + at,
               rope_.sines.data() + at);
          if (hook_) {
            view(Site::key, LinearId::k, keys, inner_width_, 0, kv_width(c), kv_width(c));
            view(Site::value, LinearId::v, keys + kv_width(c), inner_width_, 0, kv_width(c), kv_width(c));
          }
          break;
        }
        case Output::residual: {
          float* to = hidden_rows(tile);
          const ActivationTile& input = input_of(0);
          for (std::int64_t chunk = 0; chunk < weights[0].chunks(); ++chunk) {
            const std::int64_t width = weights[0].chunk_width(chunk), begin = chunk * kChunkRows;
            weights[0].multiply(chunk, input, chunk_y, width, partial);
            if (hook_) view(Site::linear_output, set[0], chunk_y, width, begin, width, weights[0].out());
            for (std::int64_t r = 0; r < tile.rows; ++r) {
              float* row = to + r * c.hidden_size + begin;
              add_to(row, chunk_y + r * width, width);
              if (walker.compute == Compute::bf16_serve) round_array_to_bf16(row, width, row);
            }
          }
          break;
        }
        case Output::inner: {
          // Two Linears, chunk by chunk, so that gate and up meet while they are in the cache. Their inputs
          // differ only where a recipe gives them different activation formats.
          float* to = inner_rows(tile);
          const bool shared = mine[0].activation == mine[1].activation && mine[0].type == mine[1].type &&
                              mine[0].k_block == mine[1].k_block;
          if (!shared) {
            const ActivationTile& gate_input = input_of(0);
            for (std::int64_t chunk = 0; chunk < weights[0].chunks(); ++chunk)
              weights[0].multiply(chunk, gate_input, to + chunk * kChunkRows, inner_width_, partial);
          }
          const ActivationTile& input = input_of(1);
          for (std::int64_t chunk = 0; chunk < weights[1].chunks(); ++chunk) {
            const std::int64_t width = weights[1].chunk_width(chunk), begin = chunk * kChunkRows;
            const float* gate = to + begin;
            std::int64_t gate_stride = inner_width_;
            if (shared) {
              weights[0].multiply(chunk, input, chunk_y, width, partial);
              gate = chunk_y;
              gate_stride = width;
            }
            weights[1].multiply(chunk, input, second_y, width, partial);
            if (hook_) {
              view(Site::linear_output, set[0], gate, gate_stride, begin, width, weights[0].out());
              view(Site::linear_output, set[1], second_y, width, begin, width, weights[1].out());
            }
            swiglu(gate, gate_stride, second_y, width, tile.rows, width, to + begin, inner_width_);
          }
          break;
        }
      }
      if (counts.saturated || counts.nonfinite) {
        const std::lock_guard lock(counts_mutex);
        counts_[static_cast<std::size_t>(tile.walker)].saturated += counts.saturated;
        counts_[static_cast<std::size_t>(tile.walker)].nonfinite += counts.nonfinite;
      }
    });
  }
  for (const LinearId id : set) checkpoint_.release(linear_name(layer, id) + ".weight");
}

}  // namespace quantmap
