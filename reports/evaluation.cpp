#include "reports/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace quantmap {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Number& number) { return number ? Json(*number) : Json(nullptr); }

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
          {"margin_flips", e.margin_flips},
          {"delta_p_mean", json_of(e.delta_p_mean)},
          {"delta_p_rms", json_of(e.delta_p_rms)},
          {"ppl_stderr_iid", json_of(e.ppl_stderr_iid)},
          {"kl_stderr_iid", json_of(e.kl_stderr_iid)},
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

bool is_noise_floor(const EvaluationRecord& e) { return e.scheme.scheme == kNoiseFloor; }

// `0.0123 ± 0.0004`: the error with two significant digits, the value to the same place.
std::string with_error(const Number& value, const Number& error) {
  if (!value) return "-";
  if (!error || *error == 0) return fmt::format("{:.4g}", *value);
  const int place = std::max(0, 1 - static_cast<int>(std::floor(std::log10(*error))));
  if (place > 8) return fmt::format("{:.2e} ± {:.0e}", *value, *error);
  return fmt::format("{:.{}f} ± {:.{}f}", *value, place, *error, place);
}

std::string percent(const Number& value) { return value ? fmt::format("{:.2f}", 100 * *value) : "-"; }

std::string bytes_text(const Number& bytes) {
  if (!bytes) return "-";
  const double mib = *bytes / (1 << 20);
  return mib >= 10240 ? fmt::format("{:.2f} GiB", mib / 1024) : fmt::format("{:.1f} MiB", mib);
}

// Kilobytes where they are whole, as people quote a cache: `144 KiB`.
std::string cache_text(const Number& bytes) {
  if (!bytes) return "-";
  return *bytes >= 10240 ? fmt::format("{:.4g} KiB", *bytes / 1024) : fmt::format("{:.0f} B", *bytes);
}

// Notes that all rows share are said once.
std::vector<std::string> shared_notes(std::span<const EvaluationRecord> evaluations) {
  std::vector<std::string> shared;
  if (evaluations.empty()) return shared;
  for (const std::string& note : evaluations[0].notes)
    if (std::all_of(evaluations.begin(), evaluations.end(), [&](const EvaluationRecord& e) {
          return std::find(e.notes.begin(), e.notes.end(), note) != e.notes.end();
        }))
      shared.push_back(note);
  return shared;
}

}  // namespace

Table evaluation_summary(const RunRecord& run, std::span<const EvaluationRecord> evaluations) {
  std::vector<const EvaluationRecord*> sorted;
  for (const EvaluationRecord& e : evaluations) sorted.push_back(&e);
  // The reference first; then by KL, what has none last.
  std::stable_sort(sorted.begin(), sorted.end(), [](const EvaluationRecord* a, const EvaluationRecord* b) {
    const auto rank = [](const EvaluationRecord* e) {
      return e->scheme.position == 0 ? -1.0 : e->kl_mean.value_or(INFINITY);
    };
    return rank(a) < rank(b);
  });
  Table table;
  table.title =
      fmt::format("{} on {}: {} windows of {} tokens, {} scored a scheme, compute {}", run.model, run.text,
                  run.windows, run.ctx, evaluations.empty() ? 0 : evaluations[0].tokens_scored, run.compute);
  table.columns = {{"scheme"},  {"KL (nats)"}, {"top-1 %"}, {"perplexity"},   {"bits/weight"},
                   {"weights"}, {"KV/token"},  {"KL p99"},  {"ln PPL ratio"}, {"flips"}};
  for (const EvaluationRecord* e : sorted) {
    const bool reference = e->scheme.position == 0;
    std::vector<Value> row;
    row.emplace_back(e->scheme.scheme);
    row.emplace_back(reference && e->kl_mean ? std::string("0") : with_error(e->kl_mean, e->kl_stderr));
    row.emplace_back(percent(e->top1_agreement));
    row.emplace_back(with_error(e->ppl, e->ppl_stderr));
    row.emplace_back(e->bpw_quantized ? fmt::format("{:.3f}", *e->bpw_quantized) : "16");
    row.emplace_back(bytes_text(e->weight_bytes));
    row.emplace_back(cache_text(e->kv_bytes_per_token));
    row.emplace_back(e->kl_p99 ? fmt::format("{:.3g}", *e->kl_p99) : "-");
    row.emplace_back(reference ? std::string("0") : with_error(e->ln_ppl_ratio, e->ln_ppl_ratio_stderr));
    row.emplace_back(e->margin_flips);
    table.rows.push_back(std::move(row));
  }
  table.notes.emplace_back(
      "KL of the reference's next-token distribution to the scheme's, mean over tokens; ± is one standard "
      "error, "
      "clustered by window. Flips: top-1 changes where the reference led by more than 0.1.");
  const std::vector<std::string> shared = shared_notes(evaluations);
  for (const std::string& note : shared) table.notes.push_back(note);
  for (const EvaluationRecord* e : sorted) {
    if (e->scheme.scheme != e->scheme.spec) table.notes.push_back(e->scheme.scheme + " = " + e->scheme.spec);
    if (e->status != "ok") table.notes.push_back(e->scheme.scheme + ": " + e->status);
    for (const std::string& note : e->notes)
      if (std::find(shared.begin(), shared.end(), note) == shared.end())
        table.notes.push_back(e->scheme.scheme + ": " + note);
  }
  const auto run_notes = nlohmann::json::parse(run.notes, nullptr, false);
  if (run_notes.is_array())
    for (const auto& note : run_notes)
      if (note.is_string()) table.notes.push_back(note.get<std::string>());
  return table;
}

Table evaluation_rows(std::span<const EvaluationRecord> evaluations) {
  Table table;
  for (const EvaluationRecord& e : evaluations) {
    std::vector<Value> row;
    const Json fields = row_of(e);
    for (const auto& [name, value] : fields.items()) {
      if (table.rows.empty()) table.columns.push_back({name});
      if (value.is_null())
        row.emplace_back();
      else if (value.is_number_integer())
        row.emplace_back(value.get<std::int64_t>());
      else if (value.is_number())
        row.emplace_back(value.get<double>());
      else
        row.emplace_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string evaluation_json(const RunRecord& run, std::span<const EvaluationRecord> evaluations) {
  Json document;
  document["run"] = run.id;
  document["model"] = run.model;
  document["fingerprints"] = {{"model", run.model_sha256},
                              {"tokenizer", run.tokenizer_sha256},
                              {"text", run.text_sha256},
                              {"token_ids", run.token_ids_sha256}};
  const auto first_ids = nlohmann::json::parse(run.first_ids, nullptr, false);
  document["protocol"] = {{"name", run.protocol.empty() ? Json(nullptr) : Json(run.protocol)},
                          {"ctx", run.ctx},
                          {"stride", run.stride > 0 ? Json(run.stride) : Json(nullptr)},
                          {"windows", run.windows},
                          {"score", run.score},
                          {"bos", run.bos},
                          {"compute", run.compute},
                          {"text_tokens", run.text_tokens},
                          {"dropped_tokens", run.dropped_tokens},
                          {"first_ids", first_ids.is_discarded() ? Json::array() : Json(first_ids)}};
  document["noise_floor"] = nullptr;
  document["rows"] = Json::array();
  for (const EvaluationRecord& e : evaluations) {
    if (is_noise_floor(e))
      document["noise_floor"] = row_of(e);
    else
      document["rows"].push_back(row_of(e));
  }
  const auto notes = nlohmann::json::parse(run.notes, nullptr, false);
  document["notes"] = notes.is_array() ? Json(notes) : Json::array();
  // Paths are bytes: what is no UTF-8 is replaced, the document stays valid.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string write_evaluation(const RunRecord& run, std::span<const EvaluationRecord> evaluations,
                             OutputFormat format, int width) {
  switch (format) {
    case OutputFormat::json:
      return evaluation_json(run, evaluations);
    case OutputFormat::csv:
      return write(evaluation_rows(evaluations), format, width);
    case OutputFormat::table:
    case OutputFormat::md:
      break;
  }
  return write(evaluation_summary(run, evaluations), format, width);
}

}  // namespace quantmap
