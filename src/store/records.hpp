// One record type per table of the results database (schema.sql). Each field of a view has its field here.
// Undefined or non-finite numbers are empty optionals with the reason in `status`: SQLite would store NaN as
// NULL silently (product.md, Files). One that is handed in all the same is stored as NULL, and added to
// `status`. Doubles read back to the bit, but for -0.0, which SQLite reads back as 0.0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/number.hpp"

namespace quantmap {

// One invocation that measured something; every row of every view leads to it.
struct RunRecord {
  std::int64_t id = 0;
  std::string key;  // SHA-256 of what decides the numbers: model, tokenizer, text, protocol, schemes, compute
  std::string command;             // `eval`
  std::string status = "running";  // `running`, `complete`
  std::string command_line, version, git_revision, machine, device;
  std::int64_t threads = 0, seed = 0;
  std::string started_at, finished_at;  // UTC, ISO 8601
  std::string model;                    // path as given
  std::string model_type;
  std::string model_sha256, tokenizer_sha256, text_sha256, token_ids_sha256;
  std::string text;      // path as given
  std::string protocol;  // name, empty: none
  std::int64_t ctx = 0, stride = 0, windows = 0;
  std::string score, bos, compute;
  std::string first_ids;            // JSON array of the first 16
  std::int64_t text_tokens = 0;     // ids of the whole text
  std::int64_t dropped_tokens = 0;  // short rest at the end
  std::int64_t plan_windows = 0;    // windows in one pass: the stored plan
  std::string notes;                // JSON array of strings: warnings that concern the whole run
};

// One scheme of a run; position 0 is the reference.
struct SchemeRecord {
  std::int64_t position = 0;
  std::string scheme, spec, weights, activations, kv;
};

// A row of the view `evaluations` (product.md, `eval --format json`).
struct EvaluationRecord {
  SchemeRecord scheme;
  Number ppl, ppl_stderr, nll, nll_stderr, ln_ppl_ratio, ln_ppl_ratio_stderr;
  Number kl_mean, kl_stderr, kl_p50, kl_p90, kl_p99, kl_p999, kl_max;
  std::int64_t kl_infinite = 0;
  Number tv_mean, top1_agreement, top1_stderr;
  std::int64_t margin_flips = 0;
  Number delta_p_mean, delta_p_rms;
  std::int64_t tokens_scored = 0, windows = 0;
  Number bpw_quantized, bpw_model, weight_bytes, kv_bytes_per_token, seconds;
  // i.i.d. standard errors, comparable with llama.cpp (formats.md, section 11).
  Number ppl_stderr_iid, kl_stderr_iid;
  // 95 % intervals by Student's t over windows.
  Number ppl_low, ppl_high, ln_ppl_ratio_low, ln_ppl_ratio_high, kl_low, kl_high, top1_low, top1_high;
  std::string status = "ok";  // else what is undefined and why
  std::vector<std::string> notes;
};

// A row of `comparisons`: two schemes of a run on the same windows (evals/comparison.hpp), `metric` of
// `scheme` less that of `than_scheme`. Numbers are empty where `verdict` is "undefined".
struct ComparisonRecord {
  std::int64_t position = 0, than = 0;
  std::string scheme, than_scheme;
  std::string metric;  // ln_ppl_ratio | kl_mean
  Number difference, stderr_of_difference, low, high, bootstrap_low, bootstrap_high, p, p_holm;
  std::int64_t windows = 0;
  std::string verdict;  // lower | higher | equal | not distinguishable | undefined
  Number more_windows;  // that would settle what is not distinguishable
};

// A row of `layer_errors` (product.md, `error --format json`).
struct LayerErrorRecord {
  std::int64_t scheme_position = 0;
  std::int64_t layer = -1;  // -1: not inside a layer
  std::string site;         // `model.layers.3 output`
  std::string scope;        // local | inherited | total
  std::string kind;         // weight | activation | output | key | value | …
  Number rel_error, rel_error_residual, sqnr_db, cosine, max_abs_error, amax, kurtosis;
  std::int64_t saturated = 0, nonfinite = 0, count = 0;
  Number row_error_p50, row_error_p90, rel_error_rest;
  std::string status = "ok";
};

// A row of `outliers`: the largest value of a site in the reference pass.
struct OutlierRecord {
  std::int64_t layer = -1;
  std::string site;
  std::int64_t window = 0, token = 0, channel = 0;  // token: position in its window
  Number value, median_abs, ratio;                  // ratio = |value| / median |h| of that site and window
  bool massive = false;                             // |value| > 100 and ratio >= 1000 (formats.md, 11, D23)
  std::string status = "ok";
};

// A row of `site_statistics`: a site of the reference over all windows (`outliers`).
struct SiteStatisticsRecord {
  std::int64_t layer = -1;
  std::string site;
  std::int64_t count = 0, nonfinite = 0;    // finite values; the others
  Number mean, rms, amax, crest, kurtosis;  // crest = amax / rms; kurtosis: Pearson, normal = 3
  std::int64_t rows = 0, massive_values = 0, massive_rows = 0, windows = 0, massive_windows = 0;
  std::string status = "ok";
};

// A row of `outlier_shares`: the squared local error of a scheme's format at a site, and what share of it
// lies in the massive values, in the rows (tokens) that hold one, in each window's first token; and the same
// without the first tokens.
struct OutlierShareRecord {
  std::int64_t scheme_position = 0;
  std::int64_t layer = -1;
  std::string site;
  Number error2, rel_error, massive_values, massive_rows, first_tokens;
  Number rest_error2, rest_rel_error, rest_massive_values, rest_massive_rows;  // without first tokens
  std::int64_t nonfinite = 0;
  std::string status = "ok";
};

// What one scheme measured in one window; the unit of resume. Sums are over the window's scored tokens.
struct WindowRecord {
  std::int64_t scheme_position = 0, window = 0;
  std::string tokens;  // per-token vectors, packed by evals (opaque here)
  std::string sums;    // window sums, packed (opaque here)
};

// A row of `task_items`: one choice of one item, as one scheme sees it.
struct TaskItemRecord {
  std::int64_t scheme_position = 0;
  std::string task;
  std::int64_t item = 0, choice = 0;
  Number loglikelihood;
  bool gold = false, greedy = false;
};

// A row of `task_scores` (evals/task_scores.hpp).
struct TaskScoreRecord {
  std::int64_t scheme_position = 0;
  std::string scheme, task;
  std::int64_t items = 0;
  Number acc, acc_stderr, acc_norm, acc_norm_stderr, acc_bytes, acc_tokens, ppl;
  std::int64_t flips = 0;
  std::string status = "ok";
};

// A row of `segment_scores`: the tokens of one label (evals/segment_scores.hpp), as `evaluations` has all.
struct SegmentRecord {
  std::int64_t position = 0;
  std::string scheme, segment;
  std::int64_t tokens = 0, windows = 0;
  Number nll, nll_stderr, ppl, ln_ppl_ratio, ln_ppl_ratio_stderr, ln_ppl_ratio_low, ln_ppl_ratio_high;
  Number kl_mean, kl_stderr, kl_low, kl_high, kl_max, top1_agreement, top1_stderr;
  std::int64_t margin_flips = 0;
  std::string status = "ok";
};

// What a run of `eval` found, as the database gives it back.
struct EvaluationResults {
  RunRecord run;
  std::vector<EvaluationRecord> evaluations;  // the reference first; the noise floor last where asked for
  std::vector<TaskScoreRecord> tasks;
  std::vector<ComparisonRecord> comparisons;
  std::vector<SegmentRecord> segments;  // by segment in order of appearance, scheme
};

// Running state of one scheme after the last stored pass, opaque here (layer error accumulators).
struct StateRecord {
  std::int64_t scheme_position = 0;
  std::string state;
};

}  // namespace quantmap
