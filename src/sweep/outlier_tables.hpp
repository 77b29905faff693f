// Massive activations, and how much of each format's error they carry (docs/outliers.md), from the
// reference's own tensors: layer by layer, whoever filled LayerTensors, so that a model and a capture of it
// give the same bits. Definitions: formats.md, section 11 (D23: measure/site_sums.hpp has the thresholds).
//
// Everything is taken window by window and merged in the order of windows: no number depends on passes or
// threads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "measure/moments.hpp"
#include "model/forward.hpp"
#include "sweep/layer_tensors.hpp"

namespace quantmap {

// One value of a tensor: the largest of its window, or a massive one.
struct PeakValue {
  std::int64_t window = 0, token = 0, channel = 0;
  float value = 0;
  Number median_abs;  // of the tensor in that window, exact; taken only where its largest is above 100
  bool massive = false;
};

// A site of the reference over all windows.
struct SiteOutliers {
  int layer = -1;    // -1: model.embed_tokens
  std::string site;  // inputs that Linears share are named after the first: `…self_attn.q_proj input`
  Moments moments;   // of the finite values
  std::int64_t nonfinite = 0;
  double sum2 = 0;  // sum of squares
  float amax = 0;
  std::int64_t rows = 0, massive_values = 0, massive_rows = 0, windows = 0, massive_windows = 0;
  // The largest value of each window, then its other massive ones by size, at most kListedPerWindow a window.
  std::vector<PeakValue> peaks;

  Number rms() const;
  Number crest() const;  // amax / rms
};
inline constexpr std::size_t kListedPerWindow = 16;

// Squared local error of one format at one site, and what of it lies where: in the massive values themselves,
// in the rows (tokens) that hold one, in each window's first token; each with the first tokens left out too.
struct SquaredError {
  double all = 0, massive_values = 0, massive_rows = 0;
  void merge(const SquaredError& other);
};
struct OutlierShare {
  int walker = 0;  // the scheme
  int layer = -1;
  std::string site;
  SquaredError error, error_without_first;
  double reference2 = 0, reference2_without_first = 0;  // sums of squares of the reference's finite values
  std::int64_t nonfinite = 0;                           // quantized values left out
};

class OutlierTables {
 public:
  // walkers[0] is the reference; the others' formats are judged on its tensors: of a Linear's input the
  // activation's, of keys and values the cache's, of the residual stream the activation's of the layer's
  // q_proj (what storing the stream in it would cost).
  OutlierTables(const ModelConfig& config, std::vector<Walker> walkers);

  static LayerSlots slots();
  // Upper bound of what this allocates for windows of these limits.
  std::int64_t bytes_needed(const PassLimits& limits, std::int64_t windows, int threads) const;
  // Once for each layer and pass, in the order of windows; first_window: the pass's first in the run.
  void measure_layer(int layer, std::int64_t first_window, const LayerTensors& tensors);

  std::vector<SiteOutliers> sites() const;   // in the order of the forward pass
  std::vector<OutlierShare> shares() const;  // by scheme, then as sites()

 private:
  struct Place {
    LayerSlot slot;
    int layer;
    std::string site;
  };
  using Order = std::pair<int, int>;  // layer, place in it
  struct WindowFacts;
  static WindowFacts window_facts(const float* x, std::int64_t tokens, std::int64_t width);
  static std::vector<WindowFacts> facts_of(const Place& place, std::int64_t first_window,
                                           const LayerTensors& tensors);
  OutlierShare window_share(const QuantSpec& spec, const Place& place, const WindowFacts& own, const float* x,
                            std::int64_t tokens, std::int64_t width) const;
  void measure_shares(const Place& place, Order order, const std::vector<WindowFacts>& facts,
                      const LayerTensors& tensors);
  void measure_place(const Place& place, Order order, std::int64_t first_window, const LayerTensors& tensors);
  QuantSpec spec_of(const Walker& walker, const Place& place) const;

  const ModelConfig& config_;
  std::vector<Walker> walkers_;
  std::map<Order, SiteOutliers> sites_;
  std::map<std::pair<int, Order>, OutlierShare> shares_;
};

}  // namespace quantmap
