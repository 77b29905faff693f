#include "map/kv_bytes.hpp"

#include <algorithm>
#include <cmath>

#include "formats/spec.hpp"
#include "scheme/rules.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kUnquantizedBits = 16;

std::int64_t row_bits(const QuantSpec& spec, std::int64_t rows, std::int64_t width) {
  if (width == 0) return 0;
  if (spec.is_reference()) return kUnquantizedBits * rows * width;
  // One scale for a whole window, or one a channel, does not grow with tokens.
  if (spec.granularity == Granularity::tensor || spec.granularity == Granularity::column)
    return spec.format->bits * rows * width;
  // By the difference, so that a tensor-wide scale (nvfp4) is left out.
  return storage_bits(spec, 2 * rows, width) - storage_bits(spec, rows, width);
}

}  // namespace

CacheChoice cache_choice_of(const Scheme& scheme) {
  return [scheme](std::int64_t layer) { return scheme.cache(static_cast<int>(layer)); };
}

CacheChoice unquantized_cache_choice() {
  return [choice = unquantized_cache()](std::int64_t) { return choice; };
}

std::int64_t cache_bits(const CacheLayer& layer, const KvChoice& choice) {
  return row_bits(choice.key, layer.rows, layer.key_width) +
         row_bits(choice.value, layer.rows, layer.value_width);
}

KvBytes kv_bytes(const ModelMap& map, const CacheChoice& choice, std::int64_t context) {
  KvBytes out;
  for (std::size_t i = 0; i < map.caches.size(); ++i) {
    const CacheLayer& layer = map.caches[i];
    const double bytes = static_cast<double>(cache_bits(layer, choice(static_cast<std::int64_t>(i)))) / 8;
    const bool full = layer.window > 0 && context >= layer.window;
    if (!full) out.per_token += bytes;
    out.per_request += bytes * static_cast<double>(full ? layer.window : context);
  }
  return out;
}

std::int64_t cached_tokens(const KvBytes& kv, std::int64_t context, double bytes) {
  if (!(bytes > 0) || !(kv.per_request > 0)) return 0;
  return static_cast<std::int64_t>(std::floor(bytes / (kv.per_request / static_cast<double>(context))));
}

}  // namespace quantmap
