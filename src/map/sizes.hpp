// `size`: a row for each scheme, from a map of the model alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "map/kv_bytes.hpp"
#include "map/machine.hpp"
#include "map/model_map.hpp"
#include "map/quant_config/quant_config.hpp"
#include "map/roofline.hpp"
#include "map/weight_bytes.hpp"
#include "scheme/scheme.hpp"

namespace quantmap {

struct SizeRequest {
  std::int64_t context = 0;
  std::int64_t requests = 1;
  std::optional<Machine> machine;
  std::string engine = "vLLM";
};

struct SizeRow {
  std::string scheme;  // as given, or the checkpoint's own by its choices' name
  std::string spec;    // full spelling; empty for the checkpoint's own
  bool own = false;
  WeightBytes weights;
  KvBytes kv;
  double kv_bytes = 0;                        // of all requests
  std::optional<std::int64_t> cached_tokens;  // that fit beside the weights; none: no memory given
  std::optional<Roofline> roofline;           // none: no machine given
  std::vector<std::string> notes;
};

// The least of 8,192 tokens and what the model takes.
std::int64_t default_context(const ModelMap& map);

SizeRow size_row(const ModelMap& map, const Scheme& scheme, const SizeRequest& request);
// The checkpoint's own scheme, as its configuration says; `config` says something that is known.
SizeRow own_size_row(const ModelMap& map, const QuantConfig& config, const SizeRequest& request);
// The checkpoint as its files hold it (map_from_contents.hpp), its cache in 16 bits.
SizeRow stored_size_row(const ModelMap& map, const std::string& name, WeightBytes weights,
                        const SizeRequest& request);

}  // namespace quantmap
