#include "map/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace quantmap {
namespace {

constexpr std::int64_t kMostRequests = std::int64_t{1} << 30;

// Share of a layer's experts that a step of `tokens` tokens reads, were all equally likely.
double experts_read(double active_share, double tokens) { return 1 - std::pow(1 - active_share, tokens); }

// The products of one class of Linears on this machine.
struct Class {
  const LinearClass* linears = nullptr;
  double rate = 0;  // 0: none known
};

class Estimate {
 public:
  Estimate(const ModelMap& map, const WeightBytes& weights, const KvBytes& kv, const Machine& machine,
           const RooflineQuestion& question, Roofline& out)
      : map_(map), weights_(weights), kv_(kv), machine_(machine), question_(question), out_(out) {
    for (const LinearClass& linears : weights.linears) classes_.push_back({&linears, rate_of(linears)});
  }

  double bytes_a_step(double requests) const {
    double bits = static_cast<double>(weights_.vector_bits);
    for (const LinearClass& linears : weights_.linears)
      bits += static_cast<double>(linears.bits) *
              (linears.expert ? experts_read(active_share(linears), requests) : 1);
    return bits / 8 + embedding_bytes(requests) + requests * kv_.per_request;
  }
  // Of one decoding step; none where a rate is missing.
  std::optional<double> products_seconds(double requests) const {
    double seconds = requests * decode_attention_flops() / attention_rate();
    for (const Class& one : classes_)
      seconds += 2 * requests * static_cast<double>(one.linears->active_values) / one.rate;
    if (weights_.tied)
      seconds +=
          2 * requests * static_cast<double>(weights_.part(Part::embeddings).values) / attention_rate();
    return std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
  }
  std::optional<double> prefill_seconds() const;
  std::optional<std::int64_t> compute_bound_requests() const;

 private:
  static double active_share(const LinearClass& linears) {
    return static_cast<double>(linears.active_values) / static_cast<double>(linears.values);
  }
  double embedding_bytes(double tokens) const {
    const double table = static_cast<double>(weights_.embedding_bits) / 8;
    if (weights_.tied) return table;
    const double rows = static_cast<double>(weights_.part(Part::embeddings).values) /
                        static_cast<double>(std::max<std::int64_t>(1, map_.hidden_size));
    return table / std::max(1.0, rows) * std::min(tokens, rows);
  }
  double attention_rate() const { return machine_.rate(Operands::bf16); }
  double decode_attention_flops() const {
    double flops = 0;
    for (const CacheLayer& layer : map_.caches)
      flops += layer.decode_pair_flops * static_cast<double>(layer.window > 0
                                                                 ? std::min(layer.window, question_.context)
                                                                 : question_.context);
    return flops;
  }
  double rate_of(const LinearClass& linears);

  const ModelMap& map_;
  const WeightBytes& weights_;
  const KvBytes& kv_;
  const Machine& machine_;
  const RooflineQuestion& question_;
  Roofline& out_;
  std::vector<Class> classes_;
};

void say_once(std::vector<std::string>& lines, std::string line) {
  if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
}

// Where the data say nothing: 16-bit operands for 16-bit inputs, else the machine's rate for the inputs'
// format.
Operands plain_operands(const StoredLinear& stored) {
  const std::string inputs = format_class(stored.activation);
  if (inputs == "fp8" || inputs == "mxfp8") return Operands::fp8;
  if (inputs == "int8") return Operands::int8;
  if (inputs == "nvfp4" || inputs == "mxfp4") return Operands::fp4;
  return Operands::bf16;
}

double Estimate::rate_of(const LinearClass& linears) {
  const StoredLinear& stored = linears.stored;
  const std::string what =
      fmt::format("{} weights × {} inputs", format_class(stored.weight), format_class(stored.activation));
  Operands operands = plain_operands(stored);
  if (machine_.sm != 0) {
    const EngineRow* row = find_engine_row(question_.engine, stored, machine_.sm);
    const std::string where = fmt::format("{} on {} (sm{})", question_.engine, machine_.name, machine_.sm);
    if (!row) {
      if (stored.weight || stored.activation)
        say_once(out_.assumptions, fmt::format("{}: not known of {}; counted as native", what, where));
    } else {
      operands = row->operands;
      if (row->runs == Runs::weight_only)
        say_once(out_.assumptions,
                 fmt::format("{}: {} has no such product and runs it as {} (16-bit products; {})", what,
                             where, row->falls_back_to, row->source));
      if (row->runs == Runs::no) {
        operands = plain_operands(stored);
        say_once(out_.assumptions,
                 fmt::format("{}: {} does not run it ({}); the bound is the hardware's alone", what, where,
                             row->source));
      }
    }
  }
  if (machine_.rate(operands) == 0 && operands != Operands::bf16) {
    say_once(out_.assumptions,
             fmt::format("{}: {} has no rate for it; counted at its 16-bit rate", what, machine_.name));
    operands = Operands::bf16;
  }
  return machine_.rate(operands);
}

std::optional<double> Estimate::prefill_seconds() const {
  const auto context = static_cast<double>(question_.context);
  double seconds = 0, bits = static_cast<double>(weights_.vector_bits);
  for (const Class& one : classes_) {
    const double tokens = one.linears->head ? 1 : context;
    seconds += 2 * tokens * static_cast<double>(one.linears->active_values) / one.rate;
    bits += static_cast<double>(one.linears->bits) *
            (one.linears->expert ? experts_read(active_share(*one.linears), tokens) : 1);
  }
  if (weights_.tied)
    seconds += 2 * static_cast<double>(weights_.part(Part::embeddings).values) / attention_rate();
  for (const CacheLayer& layer : map_.caches) {
    // Token t attends to min(t, window) tokens, itself included.
    const double window = layer.window > 0 ? std::min(static_cast<double>(layer.window), context) : context;
    const double pairs = window * (window + 1) / 2 + (context - window) * window;
    seconds += layer.prefill_pair_flops * pairs / attention_rate();
  }
  if (!std::isfinite(seconds)) return std::nullopt;
  const double reading = machine_.bandwidth > 0
                             ? (bits / 8 + embedding_bytes(context) + kv_.per_request) / machine_.bandwidth
                             : 0;
  return std::max(seconds, reading);
}

std::optional<std::int64_t> Estimate::compute_bound_requests() const {
  const auto bound_by_products = [&](std::int64_t requests) {
    const auto products = products_seconds(static_cast<double>(requests));
    return products && *products >= bytes_a_step(static_cast<double>(requests)) / machine_.bandwidth;
  };
  if (!(machine_.bandwidth > 0)) return std::nullopt;
  std::int64_t high = 1;  // products grow with every request, reading by less and less: the order turns once
  while (high < kMostRequests && !bound_by_products(high)) high *= 2;
  if (!bound_by_products(high)) return std::nullopt;
  std::int64_t low = high / 2;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (bound_by_products(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

double weight_bytes_a_token(const ModelMap& map, const WeightBytes& weights, bool whole_table) {
  double bits = static_cast<double>(weights.vector_bits);
  for (const LinearClass& linears : weights.linears) {
    const double share =
        linears.expert ? static_cast<double>(linears.active_values) / static_cast<double>(linears.values) : 1;
    bits += static_cast<double>(linears.bits) * share;
  }
  const double table = static_cast<double>(weights.embedding_bits);
  const double rows = static_cast<double>(weights.part(Part::embeddings).values) /
                      static_cast<double>(std::max<std::int64_t>(1, map.hidden_size));
  return (bits + (whole_table || weights.tied ? table : table / std::max(1.0, rows))) / 8;
}

Roofline roofline(const ModelMap& map, const WeightBytes& weights, const KvBytes& kv, const Machine& machine,
                  const RooflineQuestion& question) {
  Roofline out;
  Estimate estimate(map, weights, kv, machine, question, out);
  const auto requests = static_cast<double>(question.requests);
  out.bytes_a_step = estimate.bytes_a_step(requests);
  const std::optional<double> products = estimate.products_seconds(requests);
  if (machine.bandwidth > 0) {
    const double reading = out.bytes_a_step / machine.bandwidth;
    out.decode_bound_by_products = products && *products > reading;
    out.decode_tokens_per_s = requests / std::max(reading, products.value_or(0));
    out.compute_bound_requests = estimate.compute_bound_requests();
  }
  out.prefill_seconds = estimate.prefill_seconds();
  return out;
}

}  // namespace quantmap
