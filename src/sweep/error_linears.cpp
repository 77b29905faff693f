// Error tables of Linears: weights, inputs, outputs.
#include <algorithm>
#include <utility>

#include "core/parallel.hpp"
#include "formats/bf16_array.hpp"
#include "sweep/error_tables.hpp"

namespace quantmap {
namespace {

// Over each window of a walker's tensor, as the forward pass takes it.
std::vector<TensorRange> window_ranges(const LayerTensors& tensors, LayerSlot slot, int walker,
                                       const QuantSpec& spec) {
  std::vector<TensorRange> ranges(tensors.windows());
  if (!spec.needs_tensor_range()) return ranges;
  parallel_for(static_cast<std::int64_t>(ranges.size()), [&](std::int64_t task, int) {
    const auto window = static_cast<std::size_t>(task);
    ranges[window] = measure_range({tensors.rows(slot, walker, window),
                                    static_cast<std::size_t>(tensors.length(window) * tensors.width(slot))});
  });
  return ranges;
}

const float* tile_rows(const LayerTensors& tensors, LayerSlot slot, int walker, std::size_t window,
                       std::int64_t begin) {
  return tensors.rows(slot, walker, window) + begin * tensors.width(slot);
}

}  // namespace

// ---- Inputs: Linears of a set share theirs, schemes often share the format.

void ErrorTables::measure_inputs(int layer, const std::vector<LinearId>& set, const LayerTensors& tensors) {
  const LayerSlot slot = input_slot(set[0]);
  const std::int64_t width = tensors.width(slot);
  std::vector<FormatUse> uses;
  const QuantSpec reference = walker_form(walkers_[0], linear_name(layer, set[0])).activation;
  for (std::size_t w = 1; w < walkers_.size(); ++w)
    for (const LinearId id : set)
      for (const ErrorScope scope : {ErrorScope::local, ErrorScope::inherited, ErrorScope::total}) {
        const int walker = static_cast<int>(w);
        const Key key{walker, layer, static_cast<int>(id), TensorKind::activation, scope};
        if (!wants(key)) continue;
        const QuantSpec spec = scope == ErrorScope::inherited
                                   ? reference
                                   : walker_form(walkers_[w], linear_name(layer, id)).activation;
        const int source = scope == ErrorScope::local ? 0 : walker;
        add_use(uses, spec, source, key);
      }
  std::vector<Comparison> comparisons;
  for (const FormatUse& use : uses) {
    if (use.spec.is_reference()) {
      comparisons.push_back(
          {use.keys, [&tensors, slot, source = use.source](const Tile& tile, Arena&, QuantCounts&) {
             return tile_rows(tensors, slot, source, tile.window, tile.begin);
           }});
      continue;
    }
    comparisons.push_back({use.keys,
                           [&tensors, slot, width, spec = use.spec, source = use.source,
                            ranges = window_ranges(tensors, slot, use.source, use.spec)](
                               const Tile& tile, Arena& arena, QuantCounts& counts) -> const float* {
                             float* y = arena.floats(tile.rows * width);
                             quantize_tokens(spec, tile.rows, width,
                                             tile_rows(tensors, slot, source, tile.window, tile.begin), y,
                                             &ranges[tile.window], &counts);
                             return y;
                           }});
  }
  compare(tensors, {slot, width, kTileRows, {}}, comparisons);
}

// ---- Outputs: every choice of weights is quantized once, for all that it multiplies.

std::vector<double> ErrorTables::stream_norms(LinearId id, const LayerTensors& tensors) const {
  if ((id != LinearId::o && id != LinearId::down) || !tensors.has(LayerSlot::stream) ||
      !tensors.has(LayerSlot::o_output))
    return {};
  const std::int64_t width = config_.hidden_size;
  std::vector<double> norms(tensors.windows());
  parallel_for(static_cast<std::int64_t>(norms.size()), [&](std::int64_t task, int) {
    const auto window = static_cast<std::size_t>(task);
    std::vector<float> row(static_cast<std::size_t>(width));
    for (std::int64_t t = 0; t < tensors.length(window); ++t) {
      const float* x = tensors.rows(LayerSlot::stream, 0, window) + t * width;
      std::copy(x, x + width, row.begin());
      if (id == LinearId::down) {  // the stream after attention
        const float* more = tensors.rows(LayerSlot::o_output, 0, window) + t * width;
        for (std::int64_t i = 0; i < width; ++i) row[static_cast<std::size_t>(i)] += more[i];
        if (walkers_[0].compute == Compute::bf16_serve) round_array_to_bf16(row.data(), width, row.data());
      }
      norms[window] += row_difference(row.data(), row.data(), width).reference2;
    }
  });
  return norms;
}

void ErrorTables::measure_outputs(int layer, LinearId id, const LayerTensors& tensors,
                                  const TensorSource& source) {
  const std::string module = linear_name(layer, id);
  const LinearShape shape = linear_shape(config_, id);
  const LayerSlot in = input_slot(id), out = output_slot(id);
  const LinearForm reference = walker_form(walkers_[0], module);
  // Products to take: this form on this walker's input. What a walker's own pass gave is kept already.
  struct Product {
    LinearForm form;
    int source = 0;
    std::vector<Key> keys;
  };
  std::vector<Product> products;
  std::vector<Comparison> kept;
  const auto keep = [&](const Key& key, int walker) {
    kept.push_back({{key}, [&tensors, out, walker](const Tile& tile, Arena&, QuantCounts&) {
                      return tile_rows(tensors, out, walker, tile.window, tile.begin);
                    }});
  };
  for (std::size_t w = 1; w < walkers_.size(); ++w)
    for (const ErrorScope scope : {ErrorScope::local, ErrorScope::inherited, ErrorScope::total}) {
      const int walker = static_cast<int>(w);
      const Key key{walker, layer, static_cast<int>(id), TensorKind::output, scope};
      if (!wants(key)) continue;
      const LinearForm own = walker_form(walkers_[w], module);
      if (scope == ErrorScope::total || (scope == ErrorScope::inherited && own == reference)) {
        keep(key, walker);
        continue;
      }
      if (scope == ErrorScope::local && own == reference) {
        keep(key, 0);
        continue;
      }
      const LinearForm& form = scope == ErrorScope::local ? own : reference;
      const int from = scope == ErrorScope::local ? 0 : walker;
      auto product = std::find_if(products.begin(), products.end(),
                                  [&](const Product& p) { return p.form == form && p.source == from; });
      if (product == products.end()) product = products.insert(products.end(), {form, from, {}});
      product->keys.push_back(key);
    }
  if (kept.empty() && products.empty()) return;
  const Target target{out, shape.out, kTileRows, stream_norms(id, tensors)};
  const std::vector<Facts> facts = facts_of(tensors, out, shape.out);
  compare(tensors, target, facts, kept);

  std::vector<bool> done(products.size());
  for (std::size_t first = 0; first < products.size(); ++first) {
    if (done[first]) continue;
    const LinearForm choice = weight_key(products[first].form);
    const LinearWeights weights(source, module, shape.out, shape.in, shape.bias, choice);
    std::vector<Comparison> comparisons;
    for (std::size_t p = first; p < products.size(); ++p) {
      if (done[p] || !(weight_key(products[p].form) == choice)) continue;
      done[p] = true;
      comparisons.push_back(
          {products[p].keys,
           [&tensors, &weights, &shape, in, form = products[p].form, from = products[p].source,
            ranges = window_ranges(tensors, in, products[p].source, products[p].form.activation)](
               const Tile& tile, Arena& arena, QuantCounts&) -> const float* {
             std::byte* operand = arena.bytes(activation_scratch_bytes(form, tile.rows, shape.in));
             float* y = arena.floats(tile.rows * shape.out);
             float* partial = arena.floats(tile.rows * kChunkRows);
             const ActivationTile x = prepare_activation(
                 form, tile.rows, shape.in, tile_rows(tensors, in, from, tile.window, tile.begin),
                 &ranges[tile.window], operand, nullptr);
             for (std::int64_t chunk = 0; chunk < weights.chunks(); ++chunk)
               weights.multiply(chunk, x, y + chunk * kChunkRows, shape.out, partial);
             return y;
           }});
    }
    compare(tensors, target, facts, comparisons);
  }
  source.release(module + ".weight");
}

// ---- Weights

void ErrorTables::measure_head_weights(const TensorSource& source) {
  bool quantized = false;
  for (const Walker& walker : walkers_)
    quantized = quantized || !walker_form(walker, kHead).weight.is_reference();
  if (quantized)
    measure_matrix(-1, kHeadPlace, config_.tied_embeddings ? kEmbedding : kHead, config_.vocab_size,
                   config_.hidden_size, source);
}

void ErrorTables::measure_matrix(int layer, int place, const std::string& module, std::int64_t out,
                                 std::int64_t in, const TensorSource& source) {
  const std::string rule = place == kHeadPlace ? kHead : module;  // what schemes call it
  struct Use {
    QuantSpec spec;
    std::vector<Key> keys;
    bool whole = false;  // its pieces are not quantized apart
    std::vector<RowDifference> rows;
    std::vector<QuantCounts> counts;  // [chunk]
  };
  std::vector<Use> uses;
  for (std::size_t w = 1; w < walkers_.size(); ++w) {
    const Key key{static_cast<int>(w), layer, place, TensorKind::weight, ErrorScope::local};
    if (!wants(key)) continue;
    const QuantSpec spec = walker_form(walkers_[w], rule).weight;
    if (place == kHeadPlace && spec.is_reference()) continue;
    auto use = std::find_if(uses.begin(), uses.end(), [&](const Use& u) { return u.spec == spec; });
    if (use == uses.end()) {
      const std::int64_t piece = spec.is_reference() ? 1 : piece_rows(spec, out, in);
      use = uses.insert(uses.end(), {spec, {}, out > kChunkRows && kChunkRows % piece != 0, {}, {}});
    }
    use->keys.push_back(key);
  }
  if (uses.empty()) return;

  const bool round = walkers_[0].compute != Compute::f32;
  const std::string tensor = module + ".weight";
  const auto read_rows = [&](std::int64_t begin, std::int64_t count, float* to) {
    source.read(tensor, begin, begin + count, to);
    if (round) round_array_to_bf16(to, count * in, to);
  };
  const std::int64_t chunks = (out + kChunkRows - 1) / kChunkRows;
  const auto chunk_rows = [&](std::int64_t chunk) { return std::min(kChunkRows, out - chunk * kChunkRows); };

  TensorRange range;
  if (std::any_of(uses.begin(), uses.end(), [](const Use& u) { return u.spec.needs_tensor_range(); })) {
    std::vector<TensorRange> part(static_cast<std::size_t>(chunks));
    parallel_for(chunks, [&](std::int64_t chunk, int) {
      std::vector<float> x(static_cast<std::size_t>(chunk_rows(chunk) * in));
      read_rows(chunk * kChunkRows, chunk_rows(chunk), x.data());
      part[static_cast<std::size_t>(chunk)] = measure_range(x);
    });
    for (const TensorRange& one : part) range.merge(one);
  }
  for (Use& use : uses) {
    use.rows.resize(static_cast<std::size_t>(out));
    use.counts.resize(static_cast<std::size_t>(chunks));
    if (!use.whole) continue;
    std::vector<float> x(static_cast<std::size_t>(out * in)), y(x.size());
    parallel_for(chunks, [&](std::int64_t chunk, int) {
      read_rows(chunk * kChunkRows, chunk_rows(chunk), x.data() + chunk * kChunkRows * in);
    });
    quantize_dequantize(use.spec, out, in, x.data(), y.data(), nullptr, use.counts.data());
    parallel_for(chunks, [&](std::int64_t chunk, int) {
      for (std::int64_t r = chunk * kChunkRows; r < chunk * kChunkRows + chunk_rows(chunk); ++r)
        use.rows[static_cast<std::size_t>(r)] = row_difference(x.data() + r * in, y.data() + r * in, in);
    });
  }
  std::vector<Moments> moments(static_cast<std::size_t>(chunks));
  parallel_for(chunks, [&](std::int64_t chunk, int) {
    const std::int64_t rows = chunk_rows(chunk);
    std::vector<float> x(static_cast<std::size_t>(rows * in)), y;
    read_rows(chunk * kChunkRows, rows, x.data());
    for (std::int64_t r = 0; r < rows; ++r)
      moments[static_cast<std::size_t>(chunk)].merge(row_moments(x.data() + r * in, in));
    for (Use& use : uses) {
      if (use.whole) continue;
      const float* values = x.data();
      if (!use.spec.is_reference()) {
        y.resize(x.size());
        quantize_dequantize(use.spec, rows, in, x.data(), y.data(),
                            use.spec.needs_tensor_range() ? &range : nullptr,
                            &use.counts[static_cast<std::size_t>(chunk)]);
        values = y.data();
      }
      for (std::int64_t r = 0; r < rows; ++r)
        use.rows[static_cast<std::size_t>(chunk * kChunkRows + r)] =
            row_difference(x.data() + r * in, values + r * in, in);
    }
  });
  for (const Use& use : uses) {
    SiteSums sums;
    for (const RowDifference& row : use.rows) sums.add_row(row, in, false);
    for (const Moments& part : moments) sums.add_reference(part);
    for (const QuantCounts& counts : use.counts) sums.add_saturated(counts.saturated);
    for (const Key& key : use.keys) sums_[key].merge(sums);
  }
  source.release(tensor);
}

}  // namespace quantmap
