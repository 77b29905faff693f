#include "model/scheme_fit.hpp"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "core/error.hpp"
#include "formats/ggml_encode.hpp"
#include "model/architecture.hpp"

namespace quantmap {
namespace {

bool is_whole(const QuantSpec& spec, std::int64_t cols) {
  return spec.format->kind != FormatKind::ggml || cols % ggml_type_of(*spec.format).block == 0;
}

void require_whole(const QuantSpec& spec, std::int64_t cols, const Scheme& scheme, const std::string& where) {
  if (is_whole(spec, cols)) return;
  fail_usage(
      fmt::format("scheme {}", scheme.given()),
      fmt::format("{} {}: rows of {} values are no whole blocks of {} (a weight would fall back to {})",
                  where, spec.format->id, cols, ggml_type_of(*spec.format).block,
                  ggml_stored_type(*spec.format, cols).name));
}

template <typename Visit>
void each_linear(const Scheme& scheme, const ModelConfig& config, Visit&& visit) {
  for (int layer = 0; layer < config.layers; ++layer) {
    for (const LinearId id : kLayerLinears) {
      const std::string name = linear_name(layer, id);
      visit(name, linear_shape(config, id).in, scheme.linear(name));
    }
  }
  visit(std::string(kHead), std::int64_t{config.hidden_size}, scheme.linear(kHead));
}

}  // namespace

void require_whole_blocks(const Scheme& scheme, const ModelConfig& config) {
  each_linear(scheme, config, [&](const std::string& name, std::int64_t in, const LinearChoice& choice) {
    require_whole(choice.activation, in, scheme, fmt::format("input of {} in", name));
  });
  for (int layer = 0; layer < config.layers; ++layer) {
    const KvChoice kv = scheme.cache(layer);
    require_whole(kv.key, config.head_dim, scheme, fmt::format("keys of {} in", attention_name(layer)));
    require_whole(kv.value, config.head_dim, scheme, fmt::format("values of {} in", attention_name(layer)));
  }
}

void require_whole_blocks(const std::vector<Walker>& walkers, const ModelConfig& config) {
  for (const Walker& walker : walkers) {
    if (walker.scheme) require_whole_blocks(*walker.scheme, config);
  }
}

std::vector<std::string> fallback_notes(const Scheme& scheme, const ModelConfig& config) {
  std::map<std::tuple<std::string_view, std::int64_t>, int> matrices;
  each_linear(scheme, config, [&](const std::string&, std::int64_t in, const LinearChoice& choice) {
    if (!is_whole(choice.weight, in)) ++matrices[{choice.weight.format->id, in}];
  });
  std::vector<std::string> notes;
  for (const auto& [what, count] : matrices) {
    const auto& [id, cols] = what;
    const Format& format = *find_format(id);
    notes.push_back(
        fmt::format("{} weights with rows of {} values, no whole blocks of {}, are kept in {} instead of {}",
                    count, cols, ggml_type_of(format).block, ggml_stored_type(format, cols).name, id));
  }
  return notes;
}

}  // namespace quantmap
