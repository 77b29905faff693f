// How fast a model could decode and prefill on a machine, were nothing but memory bandwidth and products in
// the way: a bound, not a forecast. Every figure carries its assumptions.
//
// Decoding a step for `requests` sequences reads every weight once (of experts, those that the step's tokens
// are expected to pick if all are equally likely: E·(1 − (1 − k/E)^B) of E), one row of the embedding table a
// token (all of a tied table: it is the head), and each sequence's cache; it takes the longer of that and the
// products' time. Prefill of `context` tokens multiplies them all at once, the head by the last one alone;
// attention pairs are counted causally and within windows, in 16 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "map/kv_bytes.hpp"
#include "map/machine.hpp"
#include "map/model_map.hpp"
#include "map/weight_bytes.hpp"

namespace quantmap {

struct RooflineQuestion {
  std::int64_t context = 0;   // tokens cached of each request
  std::int64_t requests = 1;  // decoded together
  std::string engine;         // whose kernels; the data say what is native
};

struct Roofline {
  std::optional<double> decode_tokens_per_s;  // of all requests together; none: no bandwidth given
  std::optional<double> prefill_seconds;      // of one request; none: no rate given
  bool decode_bound_by_products = false;
  // Requests at which a step of decoding takes longer to multiply than to read; none: the cache's growth
  // keeps it bound by bandwidth, or a figure is missing.
  std::optional<std::int64_t> compute_bound_requests;
  double bytes_a_step = 0;
  std::vector<std::string> assumptions;  // one sentence each
};

Roofline roofline(const ModelMap& map, const WeightBytes& weights, const KvBytes& kv, const Machine& machine,
                  const RooflineQuestion& question);

// Bytes read to decode one token of one request without its cache; `whole_table`: the embedding table counted
// whole, though one row of it is read.
double weight_bytes_a_token(const ModelMap& map, const WeightBytes& weights, bool whole_table);

}  // namespace quantmap
