// A model as what it is made of, from its configuration alone: every weight matrix and vector by its HF
// module path and shape, and what each layer keeps in the KV cache. Nothing here is computed with: that is
// checkpoint/config.hpp and model/, which know fewer families in more detail.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quantmap {

enum class Part : std::uint8_t { embeddings, lm_head, attention, mlp, experts, router, norms, other };
inline constexpr std::size_t kParts = 8;
inline constexpr std::array<Part, kParts> kAllParts = {Part::embeddings, Part::lm_head, Part::attention,
                                                       Part::mlp,        Part::experts, Part::router,
                                                       Part::norms,      Part::other};
std::string_view part_name(Part part);

// A weight matrix [rows][cols] (a vector: one row), or `count` of them alike: the experts of a layer.
struct MapModule {
  std::string name;    // `model.layers.3.mlp.down_proj`; experts by number: up to the number
  std::string suffix;  // behind an expert's number: `.down_proj`
  Part part = Part::other;
  std::int64_t rows = 0, cols = 0;  // [out][in]
  std::int64_t bias = 0;            // values beside the matrix that no scheme touches
  std::int64_t count = 1;
  std::int64_t active = 1;  // of `count`, how many a token uses
  bool linear = false;      // a Linear: what schemes and configurations may quantize
  bool numbered = false;    // `count` modules `name` + number + `suffix`; else one name for all

  std::int64_t values() const { return rows * cols; }  // of the matrix, of one of them
  std::string module_name(std::int64_t number) const;
};

// What a layer caches for one token, and what attending to one cached token costs.
struct CacheLayer {
  std::int64_t rows = 0;          // key rows a token: KV heads (MLA: 1)
  std::int64_t key_width = 0;     // values in a key row (MLA: latent and rotated part together)
  std::int64_t value_width = 0;   // values in a value row (MLA: 0, it is the latent)
  std::int64_t window = 0;        // positions that a token sees, itself included; 0: all before it
  double prefill_pair_flops = 0;  // a query token against one cached token, all heads
  double decode_pair_flops = 0;   // the same as decoded (MLA: with the projections absorbed)
};

struct ModelMap {
  std::string model_type;  // as the configuration names it
  std::string source;      // file it was read from, for messages
  std::vector<MapModule> modules;
  std::vector<CacheLayer> caches;  // empty: not known (a model known by its tensors alone)
  std::int64_t layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t max_position = 0;  // 0: not said
  bool tied_embeddings = false;
  std::vector<std::string> notes;  // what was not counted, what was assumed

  std::int64_t parameters() const;         // a tied head once
  std::int64_t active_parameters() const;  // that one token goes through
};

// The largest model that is mapped; every count of bits below fits in 64 bits then.
inline constexpr std::int64_t kMaxParameters = std::int64_t{1} << 55;

}  // namespace quantmap
