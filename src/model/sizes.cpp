#include "model/sizes.hpp"

#include "formats/spec.hpp"
#include "model/architecture.hpp"

namespace quantmap {
namespace {

constexpr double kUnquantizedBits = 16;

// Bits for one token's keys (or values) of a layer. Scales that span a window do not grow with tokens.
double cache_bits(const QuantSpec& spec, std::int64_t kv_heads, std::int64_t head_dim) {
  if (spec.is_reference()) return kUnquantizedBits * static_cast<double>(kv_heads * head_dim);
  if (spec.granularity == Granularity::tensor || spec.granularity == Granularity::column)
    return static_cast<double>(spec.format->bits) * static_cast<double>(kv_heads * head_dim);
  // Blocks along a head, none shared by two tokens; a tensor-wide scale (nvfp4) is left out by the
  // difference.
  return static_cast<double>(storage_bits(spec, 2 * kv_heads, head_dim) -
                             storage_bits(spec, kv_heads, head_dim));
}

}  // namespace

SchemeSize scheme_size(const ModelConfig& c, const Scheme* scheme) {
  SchemeSize size;
  double bits = 0, quantized_bits = 0;
  const auto add = [&](const std::string& module, std::int64_t out, std::int64_t in, bool bias) {
    const std::int64_t values = out * in;
    size.parameters += values + (bias ? out : 0);
    if (bias) bits += kUnquantizedBits * static_cast<double>(out);
    const QuantSpec* spec = nullptr;
    LinearChoice choice;
    if (scheme && !module.empty()) {
      choice = scheme->linear(module);
      if (!choice.weight.is_reference()) spec = &choice.weight;
    }
    const double own = spec ? static_cast<double>(storage_bits(*spec, out, in))
                            : kUnquantizedBits * static_cast<double>(values);
    bits += own;
    if (spec) {
      size.quantized_values += values;
      quantized_bits += own;
    }
  };
  add("", c.vocab_size, c.hidden_size, false);
  if (!c.tied_embeddings) add(kHead, c.vocab_size, c.hidden_size, false);
  for (int layer = 0; layer < c.layers; ++layer) {
    for (const LinearId id : kLayerLinears) {
      const LinearShape shape = linear_shape(c, id);
      add(linear_name(layer, id), shape.out, shape.in, shape.bias);
    }
    add("", 2, c.hidden_size, false);  // two norms
    if (c.qk_norm) add("", 2, c.head_dim, false);
    double cache = 2 * kUnquantizedBits * static_cast<double>(kv_width(c));
    if (scheme) {
      const KvChoice kv = scheme->cache(layer);
      cache = cache_bits(kv.key, c.kv_heads, c.head_dim) + cache_bits(kv.value, c.kv_heads, c.head_dim);
    }
    size.kv_bytes_per_token += cache / 8;
  }
  add("", 1, c.hidden_size, false);
  size.weight_bytes = bits / 8;
  size.bpw_model = bits / static_cast<double>(size.parameters);
  if (size.quantized_values > 0)
    size.bpw_quantized = quantized_bits / static_cast<double>(size.quantized_values);
  return size;
}

}  // namespace quantmap
