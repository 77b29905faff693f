#include "app/evaluation_records.hpp"

#include <fmt/format.h>

#include <cmath>

#include "evals/segment_scores.hpp"
#include "model/coarse_grid.hpp"
#include "model/scheme_fit.hpp"
#include "model/sizes.hpp"

namespace quantmap {
namespace {

bool spans_window(const QuantSpec& spec) {
  return spec.needs_tensor_range() || spec.granularity == Granularity::column;
}

std::vector<std::string> scheme_notes(const Scheme& scheme, int layers, const WalkerState& state) {
  std::vector<std::string> notes;
  bool activation = false, cache = false;
  for (int layer = 0; layer < layers; ++layer) {
    const KvChoice kv = scheme.cache(layer);
    cache = cache || spans_window(kv.key) || spans_window(kv.value);
    for (const LinearId id : kLayerLinears)
      activation = activation || spans_window(scheme.linear(linear_name(layer, id)).activation);
  }
  if (activation || cache)
    notes.push_back(fmt::format("{} scales span one window: they see later tokens, which serving does not",
                                activation && cache ? "activation and cache"
                                : activation        ? "activation"
                                                    : "cache"));
  const std::vector<std::string> unused = unused_notes(scheme, layers);
  notes.insert(notes.end(), unused.begin(), unused.end());
  if (state.saturated > 0)
    notes.push_back(fmt::format("{} activation or cache values saturated", state.saturated));
  if (state.nonfinite > 0)
    notes.push_back(fmt::format("{} activation or cache values were not finite", state.nonfinite));
  return notes;
}

}  // namespace

std::vector<Walker> scheme_walkers(const std::vector<Scheme>& schemes, Compute compute) {
  std::vector<Walker> walkers(1);
  walkers[0].compute = compute;
  for (const Scheme& scheme : schemes) walkers.push_back({scheme, compute});
  return walkers;
}

std::vector<SchemeRecord> scheme_records(const std::vector<Scheme>& schemes) {
  std::vector<SchemeRecord> records;
  const auto add = [&](const std::string& name, const Scheme& scheme) {
    records.push_back({static_cast<std::int64_t>(records.size()), name, scheme.spelling(), scheme.weights(),
                       scheme.activations(), scheme.kv()});
  };
  add("BF16", Scheme::parse("BF16"));
  for (const Scheme& scheme : schemes) add(scheme.given(), scheme);
  return records;
}

std::vector<std::string> unused_notes(const Scheme& scheme, int layers) {
  std::vector<std::string> modules = {kHead}, notes;
  for (int layer = 0; layer < layers; ++layer)
    for (const LinearId id : kLayerLinears) modules.push_back(linear_name(layer, id));
  for (const std::string& pattern : scheme.unused_patterns(modules))
    notes.push_back(pattern + " matches no module of this model");
  return notes;
}

void fill_errors(LayerErrorRecord& record, const ErrorSums& sums) {
  record.rel_error = sums.relative_error();
  record.sqnr_db = sums.sqnr_db();
  record.cosine = sums.cosine();
  record.max_abs_error = sums.max_error();
  record.amax = sums.amax();
  record.nonfinite = sums.nonfinite();
  record.count = sums.count();
  record.row_error_p50 = sums.rows().quantile(0.5);
  record.row_error_p90 = sums.rows().quantile(0.9);
  if (sums.nonfinite() > 0)
    record.status =
        fmt::format("{} of {} values are not finite and are left out", sums.nonfinite(), sums.count());
  else if (!record.rel_error)
    record.status = "undefined: the reference is all zero";
}

std::vector<OutlierRecord> outlier_records(const std::vector<LayerPeak>& peaks) {
  std::vector<OutlierRecord> records;
  for (const LayerPeak& peak : peaks) {
    OutlierRecord record;
    record.layer = peak.layer;
    record.site = layer_name(peak.layer) + " output";
    record.window = peak.window;
    record.token = peak.token;
    record.channel = peak.channel;
    record.value = peak.value;
    if (peak.median_abs > 0) {
      record.median_abs = peak.median_abs;
      record.ratio = std::abs(peak.value) / peak.median_abs;
      record.massive = std::abs(peak.value) > kMassiveValue && *record.ratio >= kMassiveRatio;
    }
    records.push_back(record);
  }
  return records;
}

std::vector<LayerErrorRecord> layer_records(std::int64_t position, const WalkerState& state) {
  std::vector<LayerErrorRecord> records;
  for (std::size_t layer = 0; layer < state.layers.size(); ++layer) {
    const ErrorSums& sums = state.layers[layer];
    LayerErrorRecord record;
    record.scheme_position = position;
    record.layer = static_cast<std::int64_t>(layer);
    record.site = layer_name(static_cast<int>(layer)) + " output";
    record.scope = "total";
    record.kind = "activation";
    fill_errors(record, sums);
    record.rel_error_residual = record.rel_error;  // the site is the residual stream itself
    records.push_back(std::move(record));
  }
  return records;
}

std::vector<ComparisonRecord> comparison_records(const std::vector<SchemeRecord>& schemes,
                                                 const std::vector<Comparison>& comparisons) {
  std::vector<ComparisonRecord> records;
  for (const Comparison& c : comparisons) {
    ComparisonRecord& r = records.emplace_back();
    r.position = c.scheme;
    r.than = c.than;
    r.scheme = schemes[static_cast<std::size_t>(c.scheme)].scheme;
    r.than_scheme = schemes[static_cast<std::size_t>(c.than)].scheme;
    r.metric = c.metric;
    r.difference = c.d.difference;
    r.stderr_of_difference = c.d.stderr_of_difference;
    r.low = c.d.interval.low;
    r.high = c.d.interval.high;
    r.bootstrap_low = c.bootstrap.low;
    r.bootstrap_high = c.bootstrap.high;
    r.p = c.d.p;
    r.p_holm = c.p_holm;
    r.windows = c.d.windows;
    r.verdict = verdict_name(c.verdict);
    r.more_windows = c.more_windows;
  }
  return records;
}

std::vector<SegmentRecord> segment_records(const std::vector<SchemeRecord>& schemes,
                                           const std::vector<std::vector<WindowScores>>& of_scheme,
                                           const Segments& segments) {
  std::vector<SegmentRecord> records;
  for (std::uint32_t segment = 0; segment < segments.names.size(); ++segment) {
    std::vector<WindowScores> reference;
    for (std::size_t position = 0; position < of_scheme.size(); ++position) {
      std::vector<WindowScores> scores = scores_of_segment(of_scheme[position], segments.of_token, segment);
      if (position == 0) reference = scores;
      const ScoreSummary s = summarize(scores, reference);
      SegmentRecord& r = records.emplace_back();
      r.position = static_cast<std::int64_t>(position);
      r.scheme = schemes[position].scheme;
      r.segment = segments.names[segment];
      r.tokens = s.tokens;
      r.windows = s.windows;
      r.nll = s.nll;
      r.nll_stderr = s.nll_stderr;
      r.ppl = s.ppl;
      r.ln_ppl_ratio = s.ln_ppl_ratio;
      r.ln_ppl_ratio_stderr = s.ln_ppl_ratio_stderr;
      r.ln_ppl_ratio_low = s.ln_ppl_ratio_interval.low;
      r.ln_ppl_ratio_high = s.ln_ppl_ratio_interval.high;
      r.kl_mean = s.kl_mean;
      r.kl_stderr = s.kl_stderr;
      r.kl_low = s.kl_interval.low;
      r.kl_high = s.kl_interval.high;
      r.kl_max = s.kl_max;
      r.top1_agreement = s.top1_agreement;
      r.top1_stderr = s.top1_stderr;
      r.margin_flips = s.margin_flips;
      r.status = s.status;
    }
  }
  return records;
}

Number gate_column(const EvaluationRecord& e, std::string_view name) {
  if (name == "tokens_scored") return static_cast<double>(e.tokens_scored);
  if (name == "bpw_quantized") return e.bpw_quantized;
  if (name == "bpw_model") return e.bpw_model;
  if (name == "weight_bytes") return e.weight_bytes;
  if (name == "kv_bytes_per_token") return e.kv_bytes_per_token;
  if (name == "seconds") return e.seconds;
  return std::nullopt;
}

std::vector<std::string> grid_notes(const Checkpoint& checkpoint) {
  const auto grid = find_coarse_grid(checkpoint);
  if (!grid) return {};
  return {
      fmt::format("this checkpoint was quantized before: {:.1f} % of {} blocks of {} weights hold at most {} "
                  "values, a {}-bit grid; {}-bit numbers are flattered, and all are relative to this "
                  "checkpoint, not to what "
                  "it was made from",
                  100 * grid->share, grid->blocks, grid->block, 1 << grid->bits, grid->bits, grid->bits)};
}

EvaluationRecord evaluation_record(const SchemeRecord& scheme, const ScoreSummary& s, const Scheme* rules,
                                   const WalkerState& state, const ModelConfig& config) {
  EvaluationRecord e;
  e.scheme = scheme;
  e.ppl = s.ppl;
  e.ppl_stderr = s.ppl_stderr;
  e.nll = s.nll;
  e.nll_stderr = s.nll_stderr;
  e.ln_ppl_ratio = s.ln_ppl_ratio;
  e.ln_ppl_ratio_stderr = s.ln_ppl_ratio_stderr;
  e.kl_mean = s.kl_mean;
  e.kl_stderr = s.kl_stderr;
  e.kl_p50 = s.kl_p50;
  e.kl_p90 = s.kl_p90;
  e.kl_p99 = s.kl_p99;
  e.kl_p999 = s.kl_p999;
  e.kl_max = s.kl_max;
  e.kl_infinite = s.kl_infinite;
  e.tv_mean = s.tv_mean;
  e.top1_agreement = s.top1_agreement;
  e.top1_stderr = s.top1_stderr;
  e.margin_flips = s.margin_flips;
  e.delta_p_mean = s.delta_p_mean;
  e.delta_p_rms = s.delta_p_rms;
  e.ppl_stderr_iid = s.ppl_stderr_iid;
  e.kl_stderr_iid = s.kl_stderr_iid;
  e.ppl_low = s.ppl_interval.low;
  e.ppl_high = s.ppl_interval.high;
  e.ln_ppl_ratio_low = s.ln_ppl_ratio_interval.low;
  e.ln_ppl_ratio_high = s.ln_ppl_ratio_interval.high;
  e.kl_low = s.kl_interval.low;
  e.kl_high = s.kl_interval.high;
  e.top1_low = s.top1_interval.low;
  e.top1_high = s.top1_interval.high;
  e.tokens_scored = s.tokens;
  e.windows = s.windows;
  e.status = s.status;
  e.notes = s.notes;
  const SchemeSize size = scheme_size(config, rules);
  if (size.quantized_values > 0) e.bpw_quantized = size.bpw_quantized;
  e.bpw_model = size.bpw_model;
  e.weight_bytes = size.weight_bytes;
  e.kv_bytes_per_token = size.kv_bytes_per_token;
  e.seconds = state.seconds;
  if (rules) {
    const auto more = scheme_notes(*rules, config.layers, state);
    e.notes.insert(e.notes.end(), more.begin(), more.end());
    const auto fallbacks = fallback_notes(*rules, config);
    e.notes.insert(e.notes.end(), fallbacks.begin(), fallbacks.end());
  }
  return e;
}

}  // namespace quantmap
