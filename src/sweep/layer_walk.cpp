#include "sweep/layer_walk.hpp"

#include <algorithm>
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

}  // namespace

std::int64_t layer_walk_bytes(const LayerWalk& walk, const PassLimits& limits, int threads) {
  return Forward::bytes_needed(*walk.checkpoint, walk.walkers, limits, threads) +
         LayerTensors::bytes_needed(walk.checkpoint->config(), static_cast<int>(walk.walkers.size()),
                                    walk.slots, limits.tokens);
}

void walk_layers(const LayerWalk& walk, const std::function<void(double tokens)>& begin,
                 const LayerVisit& visit) {
  const auto total = static_cast<std::int64_t>(walk.windows->size());
  const PassLimits limits = limits_of(*walk.windows, walk.windows_per_pass);
  Forward forward(*walk.checkpoint, walk.walkers, limits);
  LayerTensors tensors(walk.checkpoint->config(), static_cast<int>(walk.walkers.size()), walk.slots,
                       limits.tokens);
  forward.set_hook([&](const SiteView& view) { tensors.record(view); });
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
    forward.start(std::move(windows));
    for (int layer = 0; layer < walk.checkpoint->config().layers; ++layer) {
      begin(tokens);
      keep_stream(forward, tensors);
      forward.run_layer(layer);
      visit(layer, first, tensors);
    }
  }
}

}  // namespace quantmap
