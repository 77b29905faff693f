// Error tables: what quantization does to every tensor of a layer (docs/errors.md). For each scheme, site and
// kind, in three scopes:
//
//   local      the quantized operation on the reference's input
//   inherited  the reference's operation on the input that reaches it in the scheme's own pass
//   total      the quantized operation on that input: what the scheme's pass computed
//
// against the reference's tensor. Tensors come from LayerTensors, whoever filled them, and weights from a
// TensorSource; so a model and a capture of it give the same bits. Rows are added in the order of tokens and
// windows, tiles are those of the forward pass: no number depends on passes or threads.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "checkpoint/tensor_source.hpp"
#include "measure/divergence_sums.hpp"
#include "measure/site_sums.hpp"
#include "model/arena.hpp"
#include "model/forward.hpp"
#include "sweep/layer_tensors.hpp"

namespace quantmap {

enum class ErrorScope : std::uint8_t { local, inherited, total };
enum class TensorKind : std::uint8_t {
  weight,
  activation,
  output,  // of a Linear
  key,
  value,
  attention_weights,
  attention_output,
};
inline constexpr std::array<const char*, 3> kScopeNames = {"local", "inherited", "total"};
inline constexpr std::array<const char*, 7> kKindNames = {
    "weight", "activation", "output", "key", "value", "attention_weights", "attention_output"};
inline const char* name_of(ErrorScope scope) { return kScopeNames[static_cast<std::size_t>(scope)]; }
inline const char* name_of(TensorKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

struct ErrorSelection {
  std::array<bool, kScopeNames.size()> scopes{};
  std::array<bool, kKindNames.size()> kinds{};
  std::function<bool(const std::string& site)> site;  // empty: every site
  static ErrorSelection everything();
  bool has(ErrorScope scope) const { return scopes[static_cast<std::size_t>(scope)]; }
  bool has(TensorKind kind) const { return kinds[static_cast<std::size_t>(kind)]; }
  bool needs_text() const;  // anything but weights
  // The scheme's own pass is asked for, not the reference's alone.
  bool needs_schemes() const {
    return needs_text() && (has(ErrorScope::inherited) || has(ErrorScope::total));
  }
};

// One row of the tables. Rows are a token of a window (activation, output, attention_output), a token and
// head (key, value), an output channel (weight); kind attention_weights has `divergence` in place of `sums`.
struct SiteError {
  int walker = 0;  // the scheme; the reference, walker 0, has no rows
  int layer = -1;  // -1: not inside a layer
  std::string site;
  ErrorScope scope = ErrorScope::local;
  TensorKind kind = TensorKind::weight;
  SiteSums sums;
  DivergenceSums divergence;
};
inline constexpr const char* kAllSites = "all";  // SiteError::site of the sum of a scheme's rows

class ErrorTables {
 public:
  // walkers[0] is the reference. All have its compute.
  ErrorTables(const ModelConfig& config, std::vector<Walker> walkers, ErrorSelection selection);

  // What measure_layer reads: of the reference alone, or of all walkers, as needs_schemes() says.
  LayerSlots slots() const;
  // Upper bound of what this allocates for windows of these limits.
  std::int64_t bytes_needed(const PassLimits& limits, std::int64_t windows, int threads) const;

  // Once for each layer.
  void measure_weights(int layer, const TensorSource& source);
  // Once for each layer and pass, in the order of windows.
  void measure_layer(int layer, const LayerTensors& tensors, const TensorSource& source);
  // Once: the head's weights, where a scheme quantizes them.
  void measure_head_weights(const TensorSource& source);

  // In order of scheme, layer, site, kind and scope; after a scheme's rows one a kind and scope with layer -1
  // and the site kAllSites, their sum.
  std::vector<SiteError> rows() const;

 private:
  // A place in a layer: its Linears in order, then its attention, then the layer itself.
  static constexpr int kAttention = 7, kLayer = 8, kHeadPlace = 9;
  struct Key {
    int walker = 0;
    int layer = -1;
    int place = 0;
    TensorKind kind = TensorKind::weight;
    ErrorScope scope = ErrorScope::local;
    bool operator<(const Key& other) const {
      return std::tie(walker, layer, place, kind, scope) <
             std::tie(other.walker, other.layer, other.place, other.kind, other.scope);
    }
  };
  struct Tile {
    std::size_t window = 0;
    std::int64_t begin = 0, rows = 0;
  };
  // Gives the tensor that is compared with the reference's, [rows][width]: a pointer to what is kept, or to
  // scratch that it filled.
  using Produce = std::function<const float*(const Tile&, Arena&, QuantCounts&)>;
  struct Comparison {
    std::vector<Key> keys;  // of the rows that it counts for
    Produce produce;
  };
  // A format on a walker's tensor, and the rows that it counts for: schemes often share both.
  struct FormatUse {
    QuantSpec spec;
    int source = 0;  // whose tensor
    std::vector<Key> keys;
  };
  static void add_use(std::vector<FormatUse>& uses, const QuantSpec& spec, int source, const Key& key);
  // About a reference tensor in a window.
  struct Facts {
    Moments moments;
    std::vector<bool> massive;  // by row
  };
  std::string site_of(const Key& key) const;
  bool wants(const Key& key) const;

  std::vector<Facts> facts_of(const LayerTensors& tensors, LayerSlot slot, std::int64_t row_width) const;
  // How a reference tensor is compared: rows of row_width, made in tiles of tile_rows tokens; streams: a
  // window's sum of squares of the residual stream that it is added to, or none.
  struct Target {
    LayerSlot slot = LayerSlot::stream;
    std::int64_t row_width = 0, tile_rows = 0;
    std::vector<double> streams;
  };
  void compare(const LayerTensors& tensors, const Target& target, const std::vector<Facts>& facts,
               const std::vector<Comparison>& comparisons);
  void compare(const LayerTensors& tensors, const Target& target, const std::vector<Comparison>& comparisons);
  void measure_inputs(int layer, const std::vector<LinearId>& set, const LayerTensors& tensors);
  void measure_outputs(int layer, LinearId id, const LayerTensors& tensors, const TensorSource& source);
  void measure_stream(int layer, const LayerTensors& tensors);
  void measure_cache(int layer, TensorKind kind, const LayerTensors& tensors);
  void measure_attention_output(int layer, const LayerTensors& tensors);
  void measure_attention_weights(int layer, const LayerTensors& tensors);
  void measure_matrix(int layer, int place, const std::string& tensor, std::int64_t out, std::int64_t in,
                      const TensorSource& source);
  std::vector<double> stream_norms(LinearId id, const LayerTensors& tensors) const;
  std::int64_t scratch_bytes(std::int64_t longest_window) const;
  void reserve_scratch(const LayerTensors& tensors);

  const ModelConfig& config_;
  std::vector<Walker> walkers_;
  ErrorSelection selection_;
  std::map<Key, SiteSums> sums_;
  std::map<Key, DivergenceSums> divergences_;
  std::vector<std::vector<std::byte>> scratch_;  // one a worker
};

}  // namespace quantmap
