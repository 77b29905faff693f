// Walks a model layer by layer, a set of windows at a time, and shows each layer's tensors when it is done:
// what error and outlier tables are made of. A capture of the reference stands in for the model: its layers
// are read instead of computed, and what it lacks is missing (LayerTensors::has).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "capture/reader.hpp"
#include "checkpoint/checkpoint.hpp"
#include "evals/protocol.hpp"
#include "model/forward.hpp"
#include "sweep/layer_tensors.hpp"

namespace quantmap {

struct LayerWalk {
  const Checkpoint* checkpoint = nullptr;
  std::vector<Walker> walkers;  // those who walk; [0]: the reference
  const std::vector<EvalWindow>* windows = nullptr;
  LayerSlots slots{};  // what is kept of each layer
  std::int64_t windows_per_pass = 0;
  const Capture* capture = nullptr;  // of whole windows, in place of the checkpoint
};

// What it allocates with n windows a pass.
std::int64_t layer_walk_bytes(const LayerWalk& walk, const PassLimits& limits, int threads);

// begin(tokens): before each layer of a pass; may throw to end the walk. visit: behind it; first_window is
// the pass's first in the run. Passes come in the order of windows, layers in order within each.
using LayerVisit = std::function<void(int layer, std::int64_t first_window, const LayerTensors& tensors)>;
void walk_layers(const LayerWalk& walk, const std::function<void(double tokens)>& begin,
                 const LayerVisit& visit);

}  // namespace quantmap
