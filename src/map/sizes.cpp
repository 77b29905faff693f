#include "map/sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "map/name_of_choices.hpp"
#include "scheme/rules.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kDefaultContext = 8192;

void fill(const ModelMap& map, const CacheChoice& cache, const SizeRequest& request, SizeRow& row) {
  row.kv = kv_bytes(map, cache, request.context);
  row.kv_bytes = row.kv.per_request * static_cast<double>(request.requests);
  const bool all_slide = !map.caches.empty() && row.kv.per_token == 0;
  if (all_slide)
    row.notes.push_back(
        fmt::format("at {} tokens every layer's window is full: the cache grows no more", request.context));
  if (!request.machine) return;
  const Machine& machine = *request.machine;
  if (machine.memory > 0) {
    const double left = machine.memory - static_cast<double>(row.weights.bytes());
    if (left <= 0)
      row.notes.push_back(fmt::format("{}: the weights do not fit {}; its figures are as if they did",
                                      row.scheme, machine.name));
    if (!map.caches.empty()) row.cached_tokens = cached_tokens(row.kv, request.context, left);
  }
  row.roofline =
      roofline(map, row.weights, row.kv, machine, {request.context, request.requests, request.engine});
}

}  // namespace

std::int64_t default_context(const ModelMap& map) {
  return map.max_position > 0 ? std::min(kDefaultContext, map.max_position) : kDefaultContext;
}

SizeRow size_row(const ModelMap& map, const Scheme& scheme, const SizeRequest& request) {
  SizeRow row;
  row.scheme = scheme.given();
  row.spec = scheme.spelling();
  row.weights = weight_bytes(map, choice_of(scheme));
  fill(map, cache_choice_of(scheme), request, row);
  return row;
}

SizeRow own_size_row(const ModelMap& map, const QuantConfig& config, const SizeRequest& request) {
  SizeRow row;
  row.scheme = name_of(config);
  row.own = true;
  row.weights = weight_bytes(map, choice_of(config));
  KvChoice choice = unquantized_cache();
  if (config.kv && config.kv->spec) choice.key = choice.value = *config.kv->spec;
  fill(
      map, [choice](std::int64_t) { return choice; }, request, row);
  return row;
}

SizeRow stored_size_row(const ModelMap& map, const std::string& name, WeightBytes weights,
                        const SizeRequest& request) {
  SizeRow row;
  row.scheme = name;
  row.own = true;
  row.weights = std::move(weights);
  fill(map, unquantized_cache_choice(), request, row);
  return row;
}

}  // namespace quantmap
