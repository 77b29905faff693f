#include "model/forward.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "formats/bf16_array.hpp"
#include "model/forward_parts.hpp"
#include "model/head_attention.hpp"

namespace quantmap {

namespace {

// The branch that a row lies in; null: the prefix, or a window without branches.
const RowRange* branch_of(const PassWindow& window, std::int64_t row) {
  if (window.branches.empty() || row < window.prefix) return nullptr;
  const auto behind = std::upper_bound(window.branches.begin(), window.branches.end(), row,
                                       [](std::int64_t r, const RowRange& b) { return r < b.end; });
  return behind == window.branches.end() ? nullptr : &*behind;
}

void require_branches(const PassWindow& window) {
  std::int64_t at = window.prefix;
  bool good = window.prefix >= 0;
  for (const RowRange& branch : window.branches) {
    good = good && branch.begin == at && branch.end > branch.begin;
    at = branch.end;
  }
  if (!window.branches.empty() && (!good || at != static_cast<std::int64_t>(window.ids.size())))
    fail("forward pass", "", "branches do not cover a window behind its prefix");
}

}  // namespace

std::int64_t PassWindow::position(std::int64_t row) const {
  const RowRange* branch = branch_of(*this, row);
  return branch ? prefix + row - branch->begin : row;
}

std::int64_t PassWindow::run_end(std::int64_t row) const {
  const RowRange* branch = branch_of(*this, row);
  if (branch) return branch->end;
  return branches.empty() ? static_cast<std::int64_t>(ids.size()) : prefix;
}

std::int64_t inner_width(const ModelConfig& c) {
  return std::max(query_width(c) + 2 * kv_width(c), c.intermediate_size);
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
  const std::int64_t cache =
      head_cache_bytes(longest_window, c.head_dim) + branch_cache_bytes(longest_window, c.head_dim);
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
    require_branches(window);
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
                 {name + ".input_layernorm", c.hidden_size, Step::qkv});
  run_attention(layer);
  run_linear_set(layer, {LinearId::o}, {"", query_width(c), Step::residual});
  run_linear_set(layer, {LinearId::gate, LinearId::up},
                 {name + ".post_attention_layernorm", c.hidden_size, Step::inner});
  run_linear_set(layer, {LinearId::down}, {"", c.intermediate_size, Step::residual});
  if (!hook_) return;
  for (std::size_t w = 0; w < walkers_.size(); ++w)
    for (std::size_t i = 0; i < windows_.size(); ++i)
      hook_({Site::layer_output, LinearId::q, layer, static_cast<int>(w), windows_[i].index, 0,
             static_cast<std::int64_t>(windows_[i].ids.size()), 0, c.hidden_size, c.hidden_size,
             hidden(static_cast<int>(w), i), c.hidden_size});
}

}  // namespace quantmap
