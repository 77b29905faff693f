#include "sweep/layer_walk.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "sweep/plan.hpp"

namespace quantmap {
namespace {

// The residual stream that the layer begins with.
void keep_stream(const Forward& forward, LayerTensors& tensors) {
  if (!tensors.keeps(LayerSlot::stream)) return;
  for (std::size_t window = 0; window < tensors.windows(); ++window) {
    const float* x = forward.hidden(0, window);
    std::copy(x, x + tensors.length(window) * tensors.width(LayerSlot::stream),
              tensors.rows(LayerSlot::stream, 0, window));
  }
}

// Every slot that a capture may hold, with a Linear that has it.
struct CapturedSlot {
  LayerSlot slot;
  LinearId id;
};
std::vector<CapturedSlot> captured_slots() {
  std::vector<CapturedSlot> slots = {{LayerSlot::key, LinearId::k},
                                     {LayerSlot::value, LinearId::v},
                                     {LayerSlot::stream, LinearId::q},
                                     {LayerSlot::layer_output, LinearId::q}};
  for (const LinearId id : kLayerLinears) {
    slots.push_back({input_slot(id), id});
    slots.push_back({output_slot(id), id});
  }
  return slots;
}

void read_layer(const Capture& capture, int layer, std::int64_t first_window, LayerTensors& tensors) {
  LayerSlots read{};
  for (const CapturedSlot& one : captured_slots()) {
    bool& done = read[static_cast<std::size_t>(one.slot)];
    if (done || !tensors.keeps(one.slot)) continue;
    const std::string site = slot_site(layer, one.slot, one.id);
    done = capture.has(site);
    tensors.set_missing(one.slot, !done);
    for (std::size_t window = 0; done && window < tensors.windows(); ++window)
      capture.read_rows(site, first_window + static_cast<std::int64_t>(window), 0, tensors.length(window),
                        tensors.rows(one.slot, 0, window));
  }
}

const ModelConfig& config_of(const LayerWalk& walk) {
  return walk.capture ? walk.capture->config() : walk.checkpoint->config();
}

}  // namespace

std::int64_t layer_walk_bytes(const LayerWalk& walk, const PassLimits& limits, int threads) {
  const std::int64_t forward =
      walk.capture ? 0 : Forward::bytes_needed(*walk.checkpoint, walk.walkers, limits, threads);
  return forward + LayerTensors::bytes_needed(config_of(walk), static_cast<int>(walk.walkers.size()),
                                              walk.slots, limits.tokens);
}

void walk_layers(const LayerWalk& walk, const std::function<void(double tokens)>& begin,
                 const LayerVisit& visit) {
  const auto total = static_cast<std::int64_t>(walk.windows->size());
  const PassLimits limits = limits_of(*walk.windows, walk.windows_per_pass);
  LayerTensors tensors(config_of(walk), static_cast<int>(walk.walkers.size()), walk.slots, limits.tokens);
  std::optional<Forward> forward;
  if (!walk.capture) forward.emplace(*walk.checkpoint, walk.walkers, limits);
  if (forward) forward->set_hook([&](const SiteView& view) { tensors.record(view); });
  for (std::int64_t first = 0; first < total; first += walk.windows_per_pass) {
    std::vector<PassWindow> windows;
    std::vector<std::int64_t> lengths;
    double tokens = 0;
    for (std::int64_t w = first; w < std::min(total, first + walk.windows_per_pass); ++w) {
      const auto& ids = (*walk.windows)[static_cast<std::size_t>(w)].ids;
      windows.push_back({w, ids});
      lengths.push_back(static_cast<std::int64_t>(ids.size()));
      tokens += static_cast<double>(ids.size());
    }
    tensors.start(first, std::move(lengths));
    if (forward) forward->start(std::move(windows));
    for (int layer = 0; layer < config_of(walk).layers; ++layer) {
      begin(tokens);
      if (forward) {
        keep_stream(*forward, tensors);
        forward->run_layer(layer);
      } else {
        read_layer(*walk.capture, layer, first, tensors);
      }
      visit(layer, first, tensors);
    }
  }
}

}  // namespace quantmap
