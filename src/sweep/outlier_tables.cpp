#include "sweep/outlier_tables.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/parallel.hpp"
#include "kernels/difference/difference.hpp"
#include "measure/site_sums.hpp"
#include "sweep/quantize_window.hpp"

namespace quantmap {
namespace {

constexpr int kEmbeddingPlace = -1;

// The sites of a layer in the order of the forward pass; embeddings are layer 0's stream.
constexpr std::array kPlaces{LayerSlot::qkv_input,   LayerSlot::q_output,    LayerSlot::k_output,
                             LayerSlot::v_output,    LayerSlot::key,         LayerSlot::value,
                             LayerSlot::o_input,     LayerSlot::o_output,    LayerSlot::mlp_input,
                             LayerSlot::gate_output, LayerSlot::up_output,   LayerSlot::down_input,
                             LayerSlot::down_output, LayerSlot::layer_output};

// The first of the Linears that a slot belongs to; q for what belongs to none.
LinearId first_linear(LayerSlot slot) {
  for (const LinearId id : kLayerLinears)
    if (input_slot(id) == slot || output_slot(id) == slot) return id;
  return LinearId::q;
}

bool is_cache(LayerSlot slot) { return slot == LayerSlot::key || slot == LayerSlot::value; }

// Whether a format is judged here: where a scheme quantizes, and the stream.
bool is_quantized(LayerSlot slot) {
  return is_cache(slot) || slot == LayerSlot::qkv_input || slot == LayerSlot::o_input ||
         slot == LayerSlot::mlp_input || slot == LayerSlot::down_input || slot == LayerSlot::layer_output;
}

bool larger(const PeakValue& a, const PeakValue& b) { return std::abs(a.value) > std::abs(b.value); }

}  // namespace

void SquaredError::merge(const SquaredError& other) {
  all += other.all;
  massive_values += other.massive_values;
  massive_rows += other.massive_rows;
}

Number SiteOutliers::rms() const {
  if (moments.count() == 0) return std::nullopt;
  return std::sqrt(sum2 / static_cast<double>(moments.count()));
}

Number SiteOutliers::crest() const {
  const Number size = rms();
  if (!size || *size == 0) return std::nullopt;
  return amax / *size;
}

// About the reference's tensor in one window.
struct OutlierTables::WindowFacts {
  Moments moments;
  double sum2 = 0;
  std::int64_t nonfinite = 0, massive_values = 0, massive_rows = 0;
  std::vector<PeakValue> peaks;                                    // the largest value first
  double least_massive = std::numeric_limits<double>::infinity();  // of what is above kMassiveValue
  std::vector<bool> massive_row;                                   // by token

  bool is_massive(float value) const {
    const float size = std::abs(value);
    return size > kMassiveValue && size >= least_massive && std::isfinite(value);
  }
};

OutlierTables::OutlierTables(const ModelConfig& config, std::vector<Walker> walkers)
    : config_(config), walkers_(std::move(walkers)) {}

LayerSlots OutlierTables::slots() {
  LayerSlots slots{};
  for (const LayerSlot slot : kPlaces) slots[static_cast<std::size_t>(slot)] = true;
  slots[static_cast<std::size_t>(LayerSlot::stream)] = true;
  return slots;
}

QuantSpec OutlierTables::spec_of(const Walker& walker, const Place& place) const {
  if (is_cache(place.slot)) {
    const KvChoice choice = walker_cache(walker, place.layer);
    return place.slot == LayerSlot::key ? choice.key : choice.value;
  }
  return walker_form(walker, linear_name(place.layer, first_linear(place.slot))).activation;
}

void OutlierTables::measure_layer(int layer, std::int64_t first_window, const LayerTensors& tensors) {
  const auto site_of = [&](LayerSlot slot) { return slot_site(layer, slot, first_linear(slot)); };
  if (layer == 0 && tensors.has(LayerSlot::stream))
    measure_place({LayerSlot::stream, -1, site_of(LayerSlot::stream)}, {kEmbeddingPlace, 0}, first_window,
                  tensors);
  for (std::size_t place = 0; place < kPlaces.size(); ++place)
    if (const LayerSlot slot = kPlaces.at(place); tensors.has(slot))
      measure_place({slot, layer, site_of(slot)}, {layer, static_cast<int>(place)}, first_window, tensors);
}

std::vector<OutlierTables::WindowFacts> OutlierTables::facts_of(const Place& place, std::int64_t first_window,
                                                                const LayerTensors& tensors) {
  std::vector<WindowFacts> facts(tensors.windows());
  const std::int64_t width = tensors.width(place.slot);
  parallel_for(static_cast<std::int64_t>(facts.size()), [&](std::int64_t task, int) {
    const auto window = static_cast<std::size_t>(task);
    facts[window] = window_facts(tensors.rows(place.slot, 0, window), tensors.length(window), width);
    for (PeakValue& peak : facts[window].peaks) peak.window = first_window + task;
  });
  return facts;
}

OutlierTables::WindowFacts OutlierTables::window_facts(const float* x, std::int64_t tokens,
                                                       std::int64_t width) {
  WindowFacts own;
  own.massive_row.resize(static_cast<std::size_t>(tokens));
  std::vector<float> row_amax(static_cast<std::size_t>(tokens));
  PeakValue top;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const float* row = x + t * width;
    const RowDifference self = row_difference(row, row, width);
    own.moments.merge(row_moments(row, width));
    own.sum2 += self.reference2;
    own.nonfinite += self.nonfinite;
    const RowPeak peak = row_peak(row, width);
    row_amax[static_cast<std::size_t>(t)] = std::abs(peak.value);
    if (t == 0 || std::abs(peak.value) > std::abs(top.value)) {
      top.token = t;
      top.channel = peak.index;
      top.value = peak.value;
    }
  }
  own.peaks = {top};
  if (!(std::abs(top.value) > kMassiveValue)) return own;  // no median is needed
  const double median = median_abs(x, tokens * width);
  own.least_massive = kMassiveRatio * median;
  own.peaks[0].median_abs = median;
  own.peaks[0].massive = own.is_massive(top.value);
  std::vector<PeakValue> more;
  for (std::int64_t t = 0; t < tokens; ++t) {
    if (!own.is_massive(row_amax[static_cast<std::size_t>(t)])) continue;
    own.massive_row[static_cast<std::size_t>(t)] = true;
    ++own.massive_rows;
    for (std::int64_t c = 0; c < width; ++c) {
      const float value = x[t * width + c];
      if (!own.is_massive(value)) continue;
      ++own.massive_values;
      if (t != top.token || c != top.channel) more.push_back({0, t, c, value, median, true});
    }
  }
  std::stable_sort(more.begin(), more.end(), larger);
  more.resize(std::min(more.size(), kListedPerWindow - 1));
  own.peaks.insert(own.peaks.end(), more.begin(), more.end());
  return own;
}

void OutlierTables::measure_place(const Place& place, Order order, std::int64_t first_window,
                                  const LayerTensors& tensors) {
  const std::vector<WindowFacts> facts = facts_of(place, first_window, tensors);
  SiteOutliers& site = sites_[order];
  site.layer = place.layer;
  site.site = place.site;
  for (std::size_t window = 0; window < facts.size(); ++window) {
    const WindowFacts& own = facts[window];
    site.moments.merge(own.moments);
    site.sum2 += own.sum2;
    site.nonfinite += own.nonfinite;
    site.amax = std::max(site.amax, std::abs(own.peaks[0].value));
    site.rows += tensors.length(window);
    site.massive_values += own.massive_values;
    site.massive_rows += own.massive_rows;
    ++site.windows;
    site.massive_windows += own.massive_values > 0 ? 1 : 0;
    site.peaks.insert(site.peaks.end(), own.peaks.begin(), own.peaks.end());
  }
  if (is_quantized(place.slot)) measure_shares(place, order, facts, tensors);
}

// Of one format in one window.
OutlierShare OutlierTables::window_share(const QuantSpec& spec, const Place& place, const WindowFacts& own,
                                         const float* x, std::int64_t tokens, std::int64_t width) const {
  std::vector<float> y(static_cast<std::size_t>(tokens * width));
  quantize_window(spec, tokens, width, is_cache(place.slot) ? config_.head_dim : width, x, y.data(), nullptr);
  OutlierShare part;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const float* row = x + t * width;
    const float* quantized = y.data() + t * width;
    const RowDifference d = row_difference(row, quantized, width);
    SquaredError error;
    error.all = d.error2;
    if (own.massive_row[static_cast<std::size_t>(t)]) {
      error.massive_rows = d.error2;
      for (std::int64_t c = 0; c < width; ++c) {
        if (!own.is_massive(row[c]) || !std::isfinite(quantized[c])) continue;
        const double difference = double{quantized[c]} - double{row[c]};
        error.massive_values += difference * difference;
      }
    }
    part.nonfinite += d.nonfinite;
    part.error.merge(error);
    part.reference2 += d.reference2;
    if (t == 0) continue;
    part.error_without_first.merge(error);
    part.reference2_without_first += d.reference2;
  }
  return part;
}

void OutlierTables::measure_shares(const Place& place, Order order, const std::vector<WindowFacts>& facts,
                                   const LayerTensors& tensors) {
  // Schemes often share the format.
  struct Use {
    QuantSpec spec;
    std::vector<int> walkers;
  };
  std::vector<Use> uses;
  for (std::size_t w = 1; w < walkers_.size(); ++w) {
    const QuantSpec spec = spec_of(walkers_[w], place);
    if (spec.is_reference()) continue;
    auto use = std::find_if(uses.begin(), uses.end(), [&](const Use& u) { return u.spec == spec; });
    if (use == uses.end()) use = uses.insert(uses.end(), {spec, {}});
    use->walkers.push_back(static_cast<int>(w));
  }
  std::vector<OutlierShare> parts(uses.size() * facts.size());
  parallel_for(static_cast<std::int64_t>(parts.size()), [&](std::int64_t task, int) {
    const std::size_t window = static_cast<std::size_t>(task) % facts.size();
    parts[static_cast<std::size_t>(task)] =
        window_share(uses[static_cast<std::size_t>(task) / facts.size()].spec, place, facts[window],
                     tensors.rows(place.slot, 0, window), tensors.length(window), tensors.width(place.slot));
  });
  for (std::size_t u = 0; u < uses.size(); ++u)
    for (const int walker : uses[u].walkers) {
      OutlierShare& share = shares_[{walker, order}];
      share.walker = walker;
      share.layer = place.layer;
      share.site = place.site;
      for (std::size_t window = 0; window < facts.size(); ++window) {
        const OutlierShare& part = parts[u * facts.size() + window];
        share.error.merge(part.error);
        share.error_without_first.merge(part.error_without_first);
        share.reference2 += part.reference2;
        share.reference2_without_first += part.reference2_without_first;
        share.nonfinite += part.nonfinite;
      }
    }
}

std::vector<SiteOutliers> OutlierTables::sites() const {
  std::vector<SiteOutliers> sites;
  for (const auto& [order, site] : sites_) sites.push_back(site);
  return sites;
}

std::vector<OutlierShare> OutlierTables::shares() const {
  std::vector<OutlierShare> shares;
  for (const auto& [order, share] : shares_) shares.push_back(share);
  return shares;
}

std::int64_t OutlierTables::bytes_needed(const PassLimits& limits, std::int64_t windows, int threads) const {
  const ModelConfig& c = config_;
  const std::int64_t widest = std::max({c.hidden_size, query_width(c), c.intermediate_size});
  const auto places = static_cast<std::int64_t>(kPlaces.size()) * c.layers + 1;
  const std::int64_t sites =
      places * (static_cast<std::int64_t>(sizeof(SiteOutliers)) +
                windows * static_cast<std::int64_t>(kListedPerWindow * sizeof(PeakValue)));
  const std::int64_t shares = 2 * places * static_cast<std::int64_t>(walkers_.size() * sizeof(OutlierShare));
  // A window's median or its quantized values, on each thread.
  return sites + shares + limits.tokens * 8 + threads * limits.longest_window * widest * 8;
}

}  // namespace quantmap
