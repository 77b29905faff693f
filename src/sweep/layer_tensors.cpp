#include "sweep/layer_tensors.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.hpp"

namespace quantmap {
namespace {

constexpr std::size_t index(LayerSlot slot) { return static_cast<std::size_t>(slot); }

std::optional<LayerSlot> slot_of(const SiteView& view) {
  switch (view.site) {
    case Site::linear_input:
      return input_slot(view.linear);
    case Site::linear_output:
      return output_slot(view.linear);
    case Site::query:
      return LayerSlot::query;
    case Site::key:
      return LayerSlot::key;
    case Site::value:
      return LayerSlot::value;
    case Site::layer_output:
      return LayerSlot::layer_output;
    case Site::embedding:
    case Site::final_norm:
      break;
  }
  return std::nullopt;
}

int walkers_of(LayerSlot slot, int walkers) { return slot == LayerSlot::stream ? 1 : walkers; }

}  // namespace

LayerSlot input_slot(LinearId id) {
  switch (id) {
    case LinearId::q:
    case LinearId::k:
    case LinearId::v:
      return LayerSlot::qkv_input;
    case LinearId::o:
      return LayerSlot::o_input;
    case LinearId::gate:
    case LinearId::up:
      return LayerSlot::mlp_input;
    case LinearId::down:
      break;
  }
  return LayerSlot::down_input;
}

LayerSlot output_slot(LinearId id) {
  return static_cast<LayerSlot>(index(LayerSlot::q_output) + static_cast<std::size_t>(id));
}

std::string slot_site(int layer, LayerSlot slot, LinearId id) {
  switch (slot) {
    case LayerSlot::key:
      return attention_name(layer) + " key";
    case LayerSlot::value:
      return attention_name(layer) + " value";
    case LayerSlot::stream:
      return layer == 0 ? std::string(kEmbedding) + " output" : layer_name(layer - 1) + " output";
    case LayerSlot::layer_output:
      return layer_name(layer) + " output";
    default:
      return linear_name(layer, id) + (slot == output_slot(id) ? " output" : " input");
  }
}

std::int64_t slot_width(const ModelConfig& c, LayerSlot slot) {
  switch (slot) {
    case LayerSlot::o_input:
    case LayerSlot::query:
    case LayerSlot::q_output:
      return query_width(c);
    case LayerSlot::key:
    case LayerSlot::value:
    case LayerSlot::k_output:
    case LayerSlot::v_output:
      return kv_width(c);
    case LayerSlot::down_input:
    case LayerSlot::gate_output:
    case LayerSlot::up_output:
      return c.intermediate_size;
    case LayerSlot::qkv_input:
    case LayerSlot::mlp_input:
    case LayerSlot::o_output:
    case LayerSlot::down_output:
    case LayerSlot::stream:
    case LayerSlot::layer_output:
      break;
  }
  return c.hidden_size;
}

LayerTensors::LayerTensors(const ModelConfig& config, int walkers, const LayerSlots& kept,
                           std::int64_t tokens)
    : walkers_(walkers), kept_(kept) {
  for (std::size_t s = 0; s < kLayerSlots; ++s) {
    width_[s] = slot_width(config, static_cast<LayerSlot>(s));
    if (!kept_[s]) continue;
    values_[s].resize(static_cast<std::size_t>(walkers_of(static_cast<LayerSlot>(s), walkers)));
    for (auto& values : values_[s]) values.resize(static_cast<std::size_t>(tokens * width_[s]));
  }
}

std::int64_t LayerTensors::bytes_needed(const ModelConfig& config, int walkers, const LayerSlots& kept,
                                        std::int64_t tokens) {
  std::int64_t values = 0;
  for (std::size_t s = 0; s < kLayerSlots; ++s)
    if (const auto slot = static_cast<LayerSlot>(s); kept[s])
      values += walkers_of(slot, walkers) * tokens * slot_width(config, slot);
  return values * 4;
}

void LayerTensors::start(std::int64_t first_window, std::vector<std::int64_t> lengths) {
  first_window_ = first_window;
  lengths_ = std::move(lengths);
  offset_.clear();
  std::int64_t tokens = 0;
  for (const std::int64_t length : lengths_) {
    offset_.push_back(tokens);
    tokens += length;
  }
}

const float* LayerTensors::rows(LayerSlot slot, int walker, std::size_t window) const {
  const auto& walkers = values_[index(slot)];
  if (static_cast<std::size_t>(walker) >= walkers.size()) fail("error tables", "", "a tensor was not kept");
  return walkers[static_cast<std::size_t>(walker)].data() + offset_[window] * width(slot);
}

float* LayerTensors::rows(LayerSlot slot, int walker, std::size_t window) {
  return const_cast<float*>(std::as_const(*this).rows(slot, walker, window));
}

void LayerTensors::record(const SiteView& view) {
  const auto slot = view.layer < 0 ? std::nullopt : slot_of(view);
  if (!slot || !keeps(*slot)) return;
  float* to = rows(*slot, view.walker, static_cast<std::size_t>(view.window - first_window_)) +
              view.row_begin * width(*slot) + view.col_begin;
  for (std::int64_t r = 0; r < view.rows; ++r) {
    const float* from = view.data + r * view.stride;
    std::copy(from, from + view.cols, to + r * width(*slot));
  }
}

}  // namespace quantmap
