// The forward pass of a decoder-only transformer, layer-major: a model is read once, and every walker (the
// reference and each scheme) goes through a layer before the next is read. For each Linear, weights are
// quantized once for each distinct choice and shared by all walkers that have it.
//
// A pass holds the hidden states of all walkers for a set of windows. Tiles (walker, window, kTileRows
// tokens) are the tasks; a window is never cut by a pass, so no result depends on the pass or on the threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "core/row_range.hpp"
#include "model/hooks.hpp"
#include "model/operand.hpp"
#include "model/rope_table.hpp"
#include "scheme/scheme.hpp"

namespace quantmap {

// One way through the model. Walker 0 is the reference.
struct Walker {
  std::optional<Scheme> scheme;  // none: nothing is quantized
  Compute compute = Compute::bf16;
};
// What it makes of a Linear (named by its module path) and of a layer's cache.
LinearForm walker_form(const Walker& walker, const std::string& module);
KvChoice walker_cache(const Walker& walker, int layer);
// The key of a Linear's weights: its form without what only concerns activations.
LinearForm weight_key(LinearForm form);

// Without branches a window is one text. With them it is a prefix that several continuations share: rows
// [0, prefix) are the prefix, and each branch sees the prefix and itself, as if nothing else were there; its
// positions go on from the prefix. Branches lie behind the prefix in order and cover all other rows. A
// dynamic scale of a tensor spans the whole window, branches together.
struct PassWindow {
  std::int64_t index = 0;  // in the run
  std::span<const std::int32_t> ids;
  std::int64_t prefix = 0;
  std::span<const RowRange> branches = {};
  // The position of a row; and the end of the rows that go on from it one by one.
  std::int64_t position(std::int64_t row) const;
  std::int64_t run_end(std::int64_t row) const;
};

// Largest sizes of a pass, for allocation and the memory plan.
struct PassLimits {
  std::int64_t tokens = 0;  // of all its windows together
  std::int64_t longest_window = 0;
};

struct WalkerCounts {
  std::int64_t saturated = 0, nonfinite = 0;  // activations and cache, in the layers so far
};

// Called for each tile of the head on a worker thread: logits of one walker, [rows][vocab], which the visitor
// may overwrite. For walker 0 first, then the others in order, all for the same rows on the same thread;
// walker 0's logits and the visitor's own scratch [rows][vocab] stay as they are until the last walker was
// visited.
struct HeadTile {
  int walker = 0;
  int worker = 0;
  std::int64_t window = 0;     // index in the run
  std::int64_t row_begin = 0;  // position of the first row in its window
  std::int64_t rows = 0;
  float* logits = nullptr;
  float* scratch = nullptr;
};
using HeadVisitor = std::function<void(const HeadTile&)>;

class Forward {
 public:
  // Allocates for the limits. The checkpoint must outlive this.
  Forward(const Checkpoint& checkpoint, std::vector<Walker> walkers, const PassLimits& limits);
  ~Forward();

  // What a Forward of these limits allocates at its peak, in bytes, everything counted.
  static std::int64_t bytes_needed(const Checkpoint& checkpoint, const std::vector<Walker>& walkers,
                                   const PassLimits& limits, int threads);

  void set_hook(Hook hook) { hook_ = std::move(hook); }
  // Other rotary tables than the configuration's, for comparing with an implementation that rounds its
  // frequencies; as many positions as the longest window.
  void set_rope(RopeTable table) { rope_ = std::move(table); }

  void start(std::vector<PassWindow> windows);  // embeds the tokens
  void run_layer(int layer);                    // in order, 0 … layers-1
  // Final norm and head, in tiles of head_rows() tokens; rows of positions in [first_row, last_row) of each
  // window as `rows_of` gives them.
  void run_head(const std::function<RowRange(std::int64_t window)>& rows_of, const HeadVisitor& visit);
  static std::int64_t head_rows(std::int64_t vocab);

  const ModelConfig& config() const;
  const std::vector<Walker>& walkers() const { return walkers_; }
  const std::vector<PassWindow>& windows() const { return windows_; }
  // The residual stream of a walker in one window of the pass, [ids][hidden_size].
  const float* hidden(int walker, std::size_t window) const;
  // Wall time so far, the time of steps that walkers share split by the work each had in them; sums up to the
  // time spent in start, run_layer and run_head.
  const std::vector<double>& seconds() const { return seconds_; }
  const std::vector<WalkerCounts>& counts() const { return counts_; }

 private:
  struct Step;
  struct Tile;
  class LinearStep;
  class Timer;
  using LinearSet = std::vector<LinearId>;

  void run_linear_set(int layer, const LinearSet& set, const Step& step);
  void run_attention(int layer);
  const float* norm_weight(const std::string& name, Compute compute, std::vector<float>& storage) const;
  float* hidden_rows(const Tile& tile);
  float* inner_rows(const Tile& tile);

  const Checkpoint& checkpoint_;
  std::vector<Walker> walkers_;
  PassLimits limits_;
  std::vector<PassWindow> windows_;
  std::vector<std::int64_t> offset_;  // first token of each window in the pass
  std::int64_t inner_width_ = 0;
  std::vector<std::vector<float>> hidden_;  // [walker][tokens * hidden_size]
  std::vector<std::vector<float>>
      inner_;  // [walker][tokens * inner_width]: q, k, v, then the MLP's inner values
  std::vector<std::vector<std::byte>> scratch_;  // one a worker
  RopeTable rope_;
  Hook hook_;
  std::vector<double> seconds_;
  std::vector<WalkerCounts> counts_;
};

}  // namespace quantmap
