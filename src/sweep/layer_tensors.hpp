// The tensors of one layer that error tables are made of, for the windows of a pass: what a forward pass
// showed of every walker (record() is its hook), or what a capture kept of the reference (walker 0).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/architecture.hpp"
#include "model/hooks.hpp"

namespace quantmap {

// q, k and v share an input, gate and up another.
enum class LayerSlot : std::uint8_t {
  qkv_input,
  o_input,  // the attention's output
  mlp_input,
  down_input,
  q_output,
  k_output,
  v_output,
  o_output,
  gate_output,
  up_output,
  down_output,
  query,
  key,
  value,
  stream,        // the residual stream that the layer began with
  layer_output,  // the residual stream after it
};
inline constexpr std::size_t kLayerSlots = 16;
using LayerSlots = std::array<bool, kLayerSlots>;  // which are kept

LayerSlot input_slot(LinearId id);
LayerSlot output_slot(LinearId id);
// The site that a slot holds: `model.layers.3.mlp.down_proj input`; of a Linear's slots that of this one.
std::string slot_site(int layer, LayerSlot slot, LinearId id);
std::int64_t slot_width(const ModelConfig& config, LayerSlot slot);

class LayerTensors {
 public:
  // walkers: 1 (the reference) or all. stream is kept of the reference only.
  LayerTensors(const ModelConfig& config, int walkers, const LayerSlots& kept, std::int64_t tokens);
  static std::int64_t bytes_needed(const ModelConfig& config, int walkers, const LayerSlots& kept,
                                   std::int64_t tokens);

  // The windows of the next pass: the first one's index in the run, and the tokens of each.
  void start(std::int64_t first_window, std::vector<std::int64_t> lengths);

  int walkers() const { return walkers_; }
  std::size_t windows() const { return lengths_.size(); }
  std::int64_t length(std::size_t window) const { return lengths_[window]; }
  std::int64_t width(LayerSlot slot) const { return width_[static_cast<std::size_t>(slot)]; }
  bool keeps(LayerSlot slot) const { return kept_[static_cast<std::size_t>(slot)]; }
  // Whether the layer under way has it: a capture may lack what a pass always shows.
  bool has(LayerSlot slot) const { return keeps(slot) && !missing_[static_cast<std::size_t>(slot)]; }
  void set_missing(LayerSlot slot, bool missing) { missing_[static_cast<std::size_t>(slot)] = missing; }
  // [length][width] of a window of the pass.
  float* rows(LayerSlot slot, int walker, std::size_t window);
  const float* rows(LayerSlot slot, int walker, std::size_t window) const;

  // A hook: keeps what belongs to a kept slot. Thread-safe, as tiles do not overlap.
  void record(const SiteView& view);

 private:
  int walkers_;
  LayerSlots kept_, missing_{};
  std::array<std::int64_t, kLayerSlots> width_{};
  std::array<std::vector<std::vector<float>>, kLayerSlots> values_;  // [slot][walker][tokens * width]
  std::int64_t first_window_ = 0;
  std::vector<std::int64_t> lengths_, offset_;
};

}  // namespace quantmap
