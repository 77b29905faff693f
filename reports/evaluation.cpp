#include "reports/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/amounts.hpp"
#include "reports/comparisons.hpp"
#include "reports/run_document.hpp"
#include "reports/segments.hpp"
#include "reports/tasks.hpp"

namespace quantmap {
namespace {

using Json = nlohmann::ordered_json;

// A row's fields in the order of product.md; one list for JSON and CSV.
Json row_of(const EvaluationRecord& e) {
  return {{"scheme", e.scheme.scheme},
          {"spec", e.scheme.spec},
          {"weights", e.scheme.weights},
          {"activations", e.scheme.activations},
          {"kv", e.scheme.kv},
          {"ppl", json_of(e.ppl)},
          {"ppl_stderr", json_of(e.ppl_stderr)},
          {"nll", json_of(e.nll)},
          {"nll_stderr", json_of(e.nll_stderr)},
          {"ln_ppl_ratio", json_of(e.ln_ppl_ratio)},
          {"ln_ppl_ratio_stderr", json_of(e.ln_ppl_ratio_stderr)},
          {"kl_mean", json_of(e.kl_mean)},
          {"kl_stderr", json_of(e.kl_stderr)},
          {"kl_p50", json_of(e.kl_p50)},
          {"kl_p90", json_of(e.kl_p90)},
          {"kl_p99", json_of(e.kl_p99)},
          {"kl_p999", json_of(e.kl_p999)},
          {"kl_max", json_of(e.kl_max)},
          {"kl_infinite", e.kl_infinite},
          {"tv_mean", json_of(e.tv_mean)},
          {"top1_agreement", json_of(e.top1_agreement)},
          {"top1_stderr", json_of(e.top1_stderr)},
          {"margin_flips",
           e.top1_agreement ? Json(e.margin_flips) : Json(nullptr)},  // counted from the same argmax
          {"delta_p_mean", json_of(e.delta_p_mean)},
          {"delta_p_rms", json_of(e.delta_p_rms)},
          {"ppl_stderr_iid", json_of(e.ppl_stderr_iid)},
          {"kl_stderr_iid", json_of(e.kl_stderr_iid)},
          {"ppl_low", json_of(e.ppl_low)},
          {"ppl_high", json_of(e.ppl_high)},
          {"ln_ppl_ratio_low", json_of(e.ln_ppl_ratio_low)},
          {"ln_ppl_ratio_high", json_of(e.ln_ppl_ratio_high)},
          {"kl_low", json_of(e.kl_low)},
          {"kl_high", json_of(e.kl_high)},
          {"top1_low", json_of(e.top1_low)},
          {"top1_high", json_of(e.top1_high)},
          {"tokens_scored", e.tokens_scored},
          {"windows", e.windows},
          {"bpw_quantized", json_of(e.bpw_quantized)},
          {"bpw_model", json_of(e.bpw_model)},
          {"weight_bytes", json_of(e.weight_bytes)},
          {"kv_bytes_per_token", json_of(e.kv_bytes_per_token)},
          {"seconds", json_of(e.seconds)},
          {"status", e.status},
          {"notes", e.notes}};
}

constexpr int kExplanations = 2;  // notes of the table that say what its columns are

bool is_noise_floor(const EvaluationRecord& e) { return e.scheme.scheme == kNoiseFloor; }

// Each note of the rows once, in their order, after the schemes that it is about unless it is about all.
void add_notes(const std::vector<const EvaluationRecord*>& rows, std::vector<std::string>& notes) {
  std::vector<std::pair<std::string, std::vector<std::string>>> about;  // note, schemes
  const auto add = [&](const std::string& note, const std::string& scheme) {
    auto at = std::find_if(about.begin(), about.end(), [&](const auto& one) { return one.first == note; });
    if (at == about.end()) at = about.insert(about.end(), {note, {}});
    at->second.push_back(scheme);
  };
  for (const EvaluationRecord* e : rows) {
    if (e->status != "ok") add(e->status, e->scheme.scheme);
    for (const std::string& note : e->notes) add(note, e->scheme.scheme);
  }
  for (const auto& [note, schemes] : about)
    if (schemes.size() == rows.size()) notes.push_back(note);
  for (const auto& [note, schemes] : about)
    if (schemes.size() != rows.size()) notes.push_back(fmt::format("{}: {}", fmt::join(schemes, "; "), note));
}

// The reference first; then by KL, what has none last.
std::vector<const EvaluationRecord*> sorted_rows(std::span<const EvaluationRecord> evaluations) {
  std::vector<const EvaluationRecord*> sorted;
  for (const EvaluationRecord& e : evaluations) sorted.push_back(&e);
  std::stable_sort(sorted.begin(), sorted.end(), [](const EvaluationRecord* a, const EvaluationRecord* b) {
    const auto rank = [](const EvaluationRecord* e) {
      return e->scheme.position == 0 ? -1.0 : e->kl_mean.value_or(INFINITY);
    };
    return rank(a) < rank(b);
  });
  return sorted;
}

// What the schemes' names mean, every rule that decides a bit of the result spelled out.
Table full_spellings(std::span<const EvaluationRecord> evaluations) {
  Table table;
  table.title = "The schemes in full";
  table.columns = {{"scheme"}, {"in full"}};
  for (const EvaluationRecord* e : sorted_rows(evaluations))
    if (e->scheme.scheme != e->scheme.spec) table.rows.push_back({e->scheme.scheme, e->scheme.spec});
  return table;
}

}  // namespace

Table evaluation_summary(const RunRecord& run, std::span<const EvaluationRecord> evaluations) {
  constexpr int kPerplexityPlaces = 2;  // finer than its own error: the text is the same for all
  const std::vector<const EvaluationRecord*> sorted = sorted_rows(evaluations);
  Table table;
  table.title = fmt::format("{} on {}: {} window{} of {} tokens, {} tokens scored, compute {}", run.model,
                            run.text, run.windows, run.windows == 1 ? "" : "s", run.ctx,
                            evaluations.empty() ? 0 : evaluations[0].tokens_scored, run.compute);
  table.columns = {{"scheme"},  {"KL (nats)"}, {"top-1 %"}, {"perplexity"},   {"bits/weight"},
                   {"weights"}, {"KV/token"},  {"KL p99"},  {"ln PPL ratio"}, {"flips"}};
  for (const EvaluationRecord* e : sorted) {
    const bool reference = e->scheme.position == 0;
    std::vector<Value> row;
    row.emplace_back(e->scheme.scheme);
    row.emplace_back(reference && e->kl_mean ? std::string("0") : with_error(e->kl_mean, e->kl_stderr));
    row.emplace_back(percent(e->top1_agreement));
    row.emplace_back(with_error(e->ppl, e->ppl_stderr, kPerplexityPlaces));
    row.emplace_back(e->bpw_quantized ? fmt::format("{:.3f}", *e->bpw_quantized) : "16");
    row.emplace_back(bytes_text(e->weight_bytes));
    row.emplace_back(cache_text(e->kv_bytes_per_token));
    row.emplace_back(three_digits(e->kl_p99));
    row.emplace_back(reference && e->nll ? std::string("0")
                                         : with_error(e->ln_ppl_ratio, e->ln_ppl_ratio_stderr));
    row.push_back(e->top1_agreement ? Value(e->margin_flips) : Value(std::string("-")));
    table.rows.push_back(std::move(row));
  }
  table.notes.emplace_back(
      "KL of the reference's next-token distribution to the scheme's, mean over tokens; ± is one standard "
      "error, "
      "clustered by window.");
  table.notes.emplace_back("flips: top-1 changes where the reference led by more than 0.1.");
  if (std::any_of(sorted.begin(), sorted.end(), [](const auto* e) { return e->kl_mean && !e->kl_p99; }))
    table.notes.emplace_back("KL p99: - where the text is too short for it (5000 scored tokens are needed).");
  add_notes(sorted, table.notes);
  for (const auto& note : run_notes(run))
    if (note.is_string()) table.notes.push_back(note.get<std::string>());
  return table;
}

Table evaluation_rows(std::span<const EvaluationRecord> evaluations) {
  Table table;
  for (const EvaluationRecord& e : evaluations) add_row(table, row_of(e));
  return table;
}

std::string evaluation_json(const EvaluationResults& results) {
  Json document = run_document(results.run);
  document["noise_floor"] = nullptr;
  document["rows"] = Json::array();
  for (const EvaluationRecord& e : results.evaluations) {
    if (is_noise_floor(e))
      document["noise_floor"] = row_of(e);
    else
      document["rows"].push_back(row_of(e));
  }
  document["comparisons"] = comparison_rows(results.comparisons);
  if (!results.segments.empty()) document["segments"] = segment_rows(results.segments);
  if (!results.tasks.empty()) document["tasks"] = task_rows(results.tasks);
  document["notes"] = run_notes(results.run);
  // Paths are bytes: what is no UTF-8 is replaced, the document stays valid.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string write_evaluation(const EvaluationResults& results, OutputFormat format, int width) {
  switch (format) {
    case OutputFormat::json:
      return evaluation_json(results);
    case OutputFormat::csv:
      return write(evaluation_rows(results.evaluations), format, width);
    case OutputFormat::table:
    case OutputFormat::md:
      break;
  }
  std::vector<std::string> parts;
  if (results.run.windows > 0) {
    Table summary = evaluation_summary(results.run, results.evaluations);
    const std::vector<std::string> verdicts = comparison_notes(results.evaluations, results.comparisons);
    summary.notes.insert(summary.notes.begin() + kExplanations, verdicts.begin(), verdicts.end());
    parts.push_back(write(summary, format, width));
  }
  if (!results.segments.empty()) parts.push_back(write(segment_summary(results.segments), format, width));
  if (!results.tasks.empty()) parts.push_back(write(task_summary(results.tasks), format, width));
  const Table spellings = full_spellings(results.evaluations);
  if (!spellings.rows.empty()) parts.push_back(write(spellings, format, width));
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace quantmap
