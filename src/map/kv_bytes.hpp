// What the KV cache takes: of one token, of a context, of many requests. Scales that grow with tokens are
// counted (a scale for each token and head), those of a whole tensor are not. A layer with a window keeps no
// more than the window.
#pragma once

#include <cstdint>
#include <functional>

#include "map/model_map.hpp"
#include "scheme/scheme.hpp"

namespace quantmap {

// The formats of a layer's keys and values; null: 16 bits a value.
using CacheChoice = std::function<KvChoice(std::int64_t layer)>;
CacheChoice cache_choice_of(const Scheme& scheme);
CacheChoice unquantized_cache_choice();

// Bits of one token in one layer.
std::int64_t cache_bits(const CacheLayer& layer, const KvChoice& choice);

struct KvBytes {
  double per_token = 0;    // growth at this context: layers whose window is full do not grow
  double per_request = 0;  // of a context of `context` tokens
};
KvBytes kv_bytes(const ModelMap& map, const CacheChoice& choice, std::int64_t context);

// How many tokens of requests as long as `context` fit into `bytes`; 0 where none do. For a model without
// windows that is bytes / bytes per token.
std::int64_t cached_tokens(const KvBytes& kv, std::int64_t context, double bytes);

}  // namespace quantmap
