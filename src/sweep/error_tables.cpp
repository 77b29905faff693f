#include "sweep/error_tables.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/parallel.hpp"
#include "kernels/attention_divergence/attention_divergence.hpp"
#include "model/head_attention.hpp"

namespace quantmap {

ErrorSelection ErrorSelection::everything() {
  ErrorSelection all;
  all.scopes.fill(true);
  all.kinds.fill(true);
  return all;
}

bool ErrorSelection::needs_text() const {
  for (std::size_t k = 0; k < kinds.size(); ++k)
    if (kinds[k] && static_cast<TensorKind>(k) != TensorKind::weight) return true;
  return false;
}

ErrorTables::ErrorTables(const ModelConfig& config, std::vector<Walker> walkers, ErrorSelection selection)
    : config_(config), walkers_(std::move(walkers)), selection_(std::move(selection)) {}

LayerSlots ErrorTables::slots() const {
  LayerSlots slots{};
  const auto keep = [&](LayerSlot slot) { slots[static_cast<std::size_t>(slot)] = true; };
  if (selection_.has(TensorKind::activation) || selection_.has(TensorKind::output))
    for (const LinearId id : kLayerLinears) keep(input_slot(id));
  if (selection_.has(TensorKind::activation) && selection_.has(ErrorScope::total))
    keep(LayerSlot::layer_output);
  if (selection_.has(TensorKind::output)) {
    for (const LinearId id : kLayerLinears) keep(output_slot(id));
    keep(LayerSlot::stream);
  }
  const bool attention =
      selection_.has(TensorKind::attention_weights) || selection_.has(TensorKind::attention_output);
  if (attention || selection_.has(TensorKind::key)) keep(LayerSlot::key);
  if (attention || selection_.has(TensorKind::value)) keep(LayerSlot::value);
  if (attention) keep(LayerSlot::query);
  if (selection_.has(TensorKind::attention_output)) keep(LayerSlot::o_input);
  return slots;
}

std::string ErrorTables::site_of(const Key& key) const {
  if (key.place == kHeadPlace) return std::string(kHead) + " weight";
  if (key.place == kLayer) return layer_name(key.layer) + " output";
  if (key.place == kAttention) return attention_name(key.layer) + " " + name_of(key.kind);
  const std::string module = linear_name(key.layer, kLayerLinears.at(static_cast<std::size_t>(key.place)));
  return module + (key.kind == TensorKind::weight       ? " weight"
                   : key.kind == TensorKind::activation ? " input"
                                                        : " output");
}

bool ErrorTables::wants(const Key& key) const {
  return selection_.has(key.kind) && selection_.has(key.scope) &&
         (!selection_.site || selection_.site(site_of(key)));
}

// ---- The tensor that is compared, row by row

std::vector<ErrorTables::Facts> ErrorTables::facts_of(const LayerTensors& tensors, LayerSlot slot,
                                                      std::int64_t row_width) const {
  std::vector<Facts> facts(tensors.windows());
  parallel_for(static_cast<std::int64_t>(facts.size()), [&](std::int64_t task, int) {
    const auto window = static_cast<std::size_t>(task);
    const float* x = tensors.rows(slot, 0, window);
    const std::int64_t values = tensors.length(window) * tensors.width(slot), rows = values / row_width;
    Facts& own = facts[window];
    own.massive.resize(static_cast<std::size_t>(rows));
    float peak = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      own.moments.merge(row_moments(x + r * row_width, row_width));
      peak = std::max(peak, std::abs(row_peak(x + r * row_width, row_width).value));
    }
    if (!(peak > kMassiveValue)) return;  // no median is needed
    const double least = kMassiveRatio * median_abs(x, values);
    for (std::int64_t r = 0; r < rows; ++r) {
      const float size = std::abs(row_peak(x + r * row_width, row_width).value);
      own.massive[static_cast<std::size_t>(r)] = size > kMassiveValue && size >= least;
    }
  });
  return facts;
}

void ErrorTables::add_use(std::vector<FormatUse>& uses, const QuantSpec& spec, int source, const Key& key) {
  auto use = std::find_if(uses.begin(), uses.end(),
                          [&](const FormatUse& u) { return u.spec == spec && u.source == source; });
  if (use == uses.end()) use = uses.insert(uses.end(), {spec, source, {}});
  use->keys.push_back(key);
}

// A slot for each row, filled in any order, added up in order.
void ErrorTables::compare(const LayerTensors& tensors, const Target& target, const std::vector<Facts>& facts,
                          const std::vector<Comparison>& comparisons) {
  const std::int64_t row_width = target.row_width;
  const std::int64_t width = tensors.width(target.slot), per_token = width / row_width;
  std::vector<Tile> tiles;
  std::vector<std::int64_t> first_row;  // of each window, and the end
  std::int64_t rows = 0;
  for (std::size_t window = 0; window < tensors.windows(); ++window) {
    const std::int64_t length = tensors.length(window), step = std::min(target.tile_rows, length);
    first_row.push_back(rows);
    for (std::int64_t begin = 0; begin < length; begin += step)
      tiles.push_back({window, begin, std::min(step, length - begin)});
    rows += length * per_token;
  }
  first_row.push_back(rows);
  std::vector<RowDifference> differences(comparisons.size() * static_cast<std::size_t>(rows));
  std::vector<QuantCounts> counts(comparisons.size() * tiles.size());
  parallel_for(static_cast<std::int64_t>(counts.size()), [&](std::int64_t task, int worker) {
    const std::size_t index = static_cast<std::size_t>(task) / tiles.size();
    const Tile& tile = tiles[static_cast<std::size_t>(task) % tiles.size()];
    Arena arena(scratch_[static_cast<std::size_t>(worker)]);
    const float* y = comparisons[index].produce(tile, arena, counts[static_cast<std::size_t>(task)]);
    const float* x = tensors.rows(target.slot, 0, tile.window) + tile.begin * width;
    RowDifference* to = differences.data() + static_cast<std::int64_t>(index) * rows +
                        first_row[tile.window] + tile.begin * per_token;
    for (std::int64_t r = 0; r < tile.rows * per_token; ++r)
      to[r] = row_difference(x + r * row_width, y + r * row_width, row_width);
  });
  for (std::size_t index = 0; index < comparisons.size(); ++index) {
    const RowDifference* row = differences.data() + static_cast<std::int64_t>(index) * rows;
    for (std::size_t window = 0; window < tensors.windows(); ++window) {
      SiteSums part;
      for (const bool massive : facts[window].massive) part.add_row(*row++, row_width, massive);
      part.add_reference(facts[window].moments);
      for (std::size_t t = 0; t < tiles.size(); ++t)
        if (tiles[t].window == window) part.add_saturated(counts[index * tiles.size() + t].saturated);
      if (!target.streams.empty()) part.add_stream(target.streams[window]);
      for (const Key& key : comparisons[index].keys) sums_[key].merge(part);
    }
  }
}

void ErrorTables::compare(const LayerTensors& tensors, const Target& target,
                          const std::vector<Comparison>& comparisons) {
  if (!comparisons.empty())
    compare(tensors, target, facts_of(tensors, target.slot, target.row_width), comparisons);
}

// ---- A layer

void ErrorTables::measure_weights(int layer, const TensorSource& source) {
  for (const LinearId id : kLayerLinears) {
    const LinearShape shape = linear_shape(config_, id);
    measure_matrix(layer, static_cast<int>(id), linear_name(layer, id), shape.out, shape.in, source);
  }
}

void ErrorTables::measure_layer(int layer, const LayerTensors& tensors, const TensorSource& source) {
  reserve_scratch(tensors);
  if (selection_.has(TensorKind::activation)) {
    measure_inputs(layer, {LinearId::q, LinearId::k, LinearId::v}, tensors);
    measure_inputs(layer, {LinearId::o}, tensors);
    measure_inputs(layer, {LinearId::gate, LinearId::up}, tensors);
    measure_inputs(layer, {LinearId::down}, tensors);
    measure_stream(layer, tensors);
  }
  if (selection_.has(TensorKind::output))
    for (const LinearId id : kLayerLinears) measure_outputs(layer, id, tensors, source);
  if (selection_.has(TensorKind::key)) measure_cache(layer, TensorKind::key, tensors);
  if (selection_.has(TensorKind::value)) measure_cache(layer, TensorKind::value, tensors);
  if (selection_.has(TensorKind::attention_output)) measure_attention_output(layer, tensors);
  if (selection_.has(TensorKind::attention_weights)) measure_attention_weights(layer, tensors);
}

// The residual stream after the layer: what `eval` stores for every run.
void ErrorTables::measure_stream(int layer, const LayerTensors& tensors) {
  std::vector<Comparison> comparisons;
  for (std::size_t w = 1; w < walkers_.size(); ++w) {
    const int walker = static_cast<int>(w);
    const Key key{walker, layer, kLayer, TensorKind::activation, ErrorScope::total};
    if (!wants(key)) continue;
    comparisons.push_back({{key}, [&tensors, walker](const Tile& tile, Arena&, QuantCounts&) {
                             return tensors.rows(LayerSlot::layer_output, walker, tile.window) +
                                    tile.begin * tensors.width(LayerSlot::layer_output);
                           }});
  }
  if (comparisons.empty()) return;
  std::vector<double> streams;  // the site is the stream itself
  for (std::size_t window = 0; window < tensors.windows(); ++window) {
    const float* x = tensors.rows(LayerSlot::layer_output, 0, window);
    double sum = 0;
    for (std::int64_t t = 0; t < tensors.length(window); ++t, x += config_.hidden_size)
      sum += row_difference(x, x, config_.hidden_size).reference2;
    streams.push_back(sum);
  }
  compare(tensors, {LayerSlot::layer_output, config_.hidden_size, kTileRows, streams}, comparisons);
}

// ---- What comes out

std::vector<SiteError> ErrorTables::rows() const {
  std::vector<SiteError> rows;
  using Sum = std::pair<TensorKind, ErrorScope>;
  std::map<int, std::map<Sum, SiteError>> totals;  // by scheme
  std::map<int, std::map<Key, SiteError>> parts;
  const auto add = [&](const Key& key, const SiteSums& sums, const DivergenceSums& divergence) {
    parts[key.walker][key] = {key.walker, key.layer, site_of(key), key.scope, key.kind, sums, divergence};
    SiteError& total = totals[key.walker][{key.kind, key.scope}];
    total.walker = key.walker;
    total.site = kAllSites;
    total.kind = key.kind;
    total.scope = key.scope;
    total.sums.merge(sums);
    total.sums.forget_stream();  // a sum over streams of other layers is the size of nothing
    total.divergence.merge(divergence);
  };
  for (const auto& [key, sums] : sums_) add(key, sums, {});
  for (const auto& [key, divergence] : divergences_) add(key, {}, divergence);
  for (auto& [walker, own] : parts) {
    for (auto& [key, row] : own) rows.push_back(std::move(row));
    for (auto& [what, total] : totals[walker]) rows.push_back(std::move(total));
  }
  return rows;
}

// ---- Memory

std::int64_t ErrorTables::scratch_bytes(std::int64_t longest_window) const {
  const ModelConfig& c = config_;
  const std::int64_t widest = std::max({c.hidden_size, query_width(c), c.intermediate_size});
  // An input's operand (values, k-block copy, decoded values, scales), an output, a partial sum.
  const std::int64_t linear =
      3 * (kTileRows * widest * 4 + kTileRows * widest) + kTileRows * widest * 4 + kTileRows * kChunkRows * 4;
  // Attention: the output of all heads, two heads' operands, the kernels' own.
  std::int64_t products = 0;
  for (const OperandType type : {OperandType::f32, OperandType::bf16}) {
    AttentionInput input;
    input.type = type;
    input.tokens = longest_window;
    input.group = c.heads / c.kv_heads;
    input.head_dim = c.head_dim;
    products = std::max(
        {products, attention_scratch_bytes(input), attention_divergence_scratch_bytes(input, input)});
  }
  const std::int64_t attention = longest_window * query_width(c) * 4 +
                                 2 * head_cache_bytes(longest_window, c.head_dim) * 2 + products +
                                 longest_window * (c.heads / c.kv_heads) * 8;
  return std::max(linear, attention) + 8192;
}

void ErrorTables::reserve_scratch(const LayerTensors& tensors) {
  std::int64_t longest = 0;
  for (std::size_t window = 0; window < tensors.windows(); ++window)
    longest = std::max(longest, tensors.length(window));
  const auto bytes = static_cast<std::size_t>(scratch_bytes(longest));
  scratch_.resize(static_cast<std::size_t>(thread_count()));
  for (auto& memory : scratch_)
    if (memory.size() < bytes) memory.resize(bytes);
}

std::int64_t ErrorTables::bytes_needed(const PassLimits& limits, std::int64_t windows, int threads) const {
  const auto schemes = static_cast<std::int64_t>(walkers_.size()) - 1;
  const ModelConfig& c = config_;
  std::int64_t weights = 0, matrices = 0;
  for (const Walker& walker : walkers_)
    for (int layer = 0; layer < c.layers; ++layer)
      for (const LinearId id : kLayerLinears) {
        const LinearShape shape = linear_shape(c, id);
        weights =
            std::max(weights, linear_weights_bytes_bound(
                                  shape.out, shape.in, walker_form(walker, linear_name(layer, id)), threads));
        // Values and decoded values of each thread's chunk, or of the whole matrix.
        matrices = std::max(matrices, shape.out * shape.in * 8 + threads * kChunkRows * shape.in * 8);
      }
  // Differences of the rows of one site at a time, three comparisons a scheme; a window's sums.
  const std::int64_t differences =
      3 * schemes * limits.tokens * c.kv_heads * static_cast<std::int64_t>(sizeof(RowDifference));
  const std::int64_t divergences =
      3 * schemes * windows * c.kv_heads * static_cast<std::int64_t>(sizeof(DivergenceSums));
  // Rows of the tables as they are added up and as they are handed out.
  constexpr std::int64_t kRowsOfALayer = 64;
  const std::int64_t tables =
      2 * schemes * c.layers * kRowsOfALayer * static_cast<std::int64_t>(sizeof(SiteError) + 64);
  const std::int64_t medians =
      threads * limits.longest_window * std::max({c.hidden_size, query_width(c), c.intermediate_size}) * 4;
  return tables + std::max({matrices, weights + differences, differences + medians, divergences}) +
         threads * scratch_bytes(limits.longest_window);
}

}  // namespace quantmap
