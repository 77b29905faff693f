#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "reports/answer.hpp"
#include "reports/evaluation.hpp"
#include "reports/report_page.hpp"
#include "reports/run_document.hpp"
#include "reports/tasks.hpp"

namespace quantmap {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint16_t kUndefined = 65535;

struct Metric {
  const char* name;
  Number (*of)(const LayerErrorRecord&);
};
// In the order in which the page offers them.
const std::array<Metric, 6> kMetrics = {{
    {"row_error_p50", [](const LayerErrorRecord& e) { return e.row_error_p50; }},
    {"row_error_p90", [](const LayerErrorRecord& e) { return e.row_error_p90; }},
    {"rel_error", [](const LayerErrorRecord& e) { return e.rel_error; }},
    {"rel_error_rest", [](const LayerErrorRecord& e) { return e.rel_error_rest; }},
    {"rel_error_residual", [](const LayerErrorRecord& e) { return e.rel_error_residual; }},
    {"cosine_distance",
     [](const LayerErrorRecord& e) {
       return e.cosine ? Number(std::max(0.0, 1 - *e.cosine)) : std::nullopt;
     }},
}};

std::string base64(const std::vector<std::uint16_t>& codes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes, text;
  for (const std::uint16_t code : codes) {
    bytes += static_cast<char>(code & 0xFF);
    bytes += static_cast<char>(code >> 8);
  }
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j)
      text += i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63];
  }
  return text;
}

// `down_proj`, `self_attn`; `layer` for the residual stream after it. As the view layer_error_map has it.
std::string module_of(std::int64_t layer, const std::string& site) {
  std::string module = site.substr(0, site.find(' '));
  const std::string prefix = "model.layers." + std::to_string(layer);
  if (layer < 0 || !module.starts_with(prefix)) return module;
  module = module == prefix ? "layer" : module.substr(prefix.size() + 1);
  for (const std::string_view folder : {"self_attn.", "mlp."})
    if (module.starts_with(folder)) module = module.substr(folder.size());
  return module;
}

Json provenance_of(const RunRecord& run) {
  Json json = run_document(run);
  json["command"] = run.command;
  json["command_line"] = run.command_line;
  json["text"] = run.text;
  json["model_type"] = run.model_type;
  json["version"] = run.version;
  json["git_revision"] = run.git_revision;
  json["machine"] = run.machine;
  json["device"] = run.device;
  json["threads"] = run.threads;
  json["seed"] = run.seed;
  json["started_at"] = run.started_at;
  json["finished_at"] = run.finished_at;
  json["notes"] = run_notes(run);
  return json;
}

Json evaluation_of(const ReportEvaluation& evaluation) {
  Json rows = Json::array();
  for (const EvaluationRecord& e : evaluation.rows) {
    rows.push_back({{"position", e.scheme.position},
                    {"scheme", e.scheme.scheme},
                    {"noise_floor", e.scheme.scheme == kNoiseFloor},
                    {"spec", e.scheme.spec},
                    {"weights", e.scheme.weights},
                    {"activations", e.scheme.activations},
                    {"kv", e.scheme.kv},
                    {"kl", json_of(e.kl_mean)},
                    {"kl_stderr", json_of(e.kl_stderr)},
                    {"kl_low", json_of(e.kl_low)},
                    {"kl_high", json_of(e.kl_high)},
                    {"kl_p99", json_of(e.kl_p99)},
                    {"kl_infinite", e.kl_infinite},
                    {"top1", json_of(e.top1_agreement)},
                    {"top1_stderr", json_of(e.top1_stderr)},
                    {"margin_flips", e.top1_agreement ? Json(e.margin_flips) : Json(nullptr)},
                    {"ppl", json_of(e.ppl)},
                    {"ppl_stderr", json_of(e.ppl_stderr)},
                    {"ln_ppl_ratio", json_of(e.ln_ppl_ratio)},
                    {"ln_ppl_ratio_stderr", json_of(e.ln_ppl_ratio_stderr)},
                    {"bpw_quantized", json_of(e.bpw_quantized)},
                    {"bpw_model", json_of(e.bpw_model)},
                    {"weight_bytes", json_of(e.weight_bytes)},
                    {"kv_bytes_per_token", json_of(e.kv_bytes_per_token)},
                    {"tokens_scored", e.tokens_scored},
                    {"windows", e.windows},
                    {"status", e.status},
                    {"notes", e.notes}});
  }
  return {{"run", evaluation.run.id},
          {"answer", evaluation.answer.sentences},
          {"pick", evaluation.answer.pick},
          {"rows", rows}};
}

std::vector<std::string> names_of(std::span<const SchemeRecord> schemes) {
  std::vector<std::string> names;
  for (const SchemeRecord& scheme : schemes) names.push_back(scheme.scheme);
  return names;
}

Json errors_of(const ReportErrors& errors) {
  std::int64_t layers = 0, undefined = 0;
  for (const LayerErrorRecord& e : errors.rows) {
    layers = std::max(layers, e.layer + 1);
    undefined += e.status != "ok";
  }
  const auto cells = static_cast<std::size_t>(layers) * errors.schemes.size();
  // {scope, kind, module}: for each metric its codes, scheme by scheme.
  using Place = std::array<std::string, 3>;
  std::vector<Place> order;
  std::map<Place, std::array<std::vector<std::uint16_t>, kMetrics.size()>> maps;
  for (const LayerErrorRecord& e : errors.rows) {
    if (e.layer < 0) continue;
    const Place place{e.scope, e.kind, module_of(e.layer, e.site)};
    auto [at, added] = maps.try_emplace(place);
    if (added) {
      order.push_back(place);
      for (auto& codes : at->second) codes.assign(cells, kUndefined);
    }
    const auto cell = static_cast<std::size_t>(e.scheme_position * layers + e.layer);
    for (std::size_t m = 0; m < kMetrics.size(); ++m) at->second[m][cell] = log_code(kMetrics[m].of(e));
  }
  Json list = Json::array();
  for (const Place& place : order) {
    Json metrics = Json::object();
    for (std::size_t m = 0; m < kMetrics.size(); ++m) {
      const auto& codes = maps[place][m];
      const bool known =
          std::any_of(codes.begin(), codes.end(), [](auto code) { return code != kUndefined; });
      if (known) metrics[kMetrics[m].name] = base64(codes);
    }
    list.push_back({{"scope", place[0]}, {"kind", place[1]}, {"module", place[2]}, {"metrics", metrics}});
  }
  return {{"run", errors.run.id},
          {"schemes", names_of(errors.schemes)},
          {"layers", layers},
          {"undefined", undefined},
          {"maps", list}};
}

Json outliers_of(const ReportOutliers& outliers) {
  Json massive = Json::array(), sites = Json::array(), shares = Json::array();
  for (const OutlierRecord& o : outliers.largest)
    if (o.massive)
      massive.push_back({{"layer", o.layer},
                         {"module", module_of(o.layer, o.site)},
                         {"site", o.site},
                         {"window", o.window},
                         {"token", o.token},
                         {"channel", o.channel},
                         {"value", json_of(o.value)},
                         {"ratio", json_of(o.ratio)}});
  for (const SiteStatisticsRecord& s : outliers.sites) {
    const std::size_t blank = s.site.find(' ');
    sites.push_back({{"layer", s.layer},
                     {"module", module_of(s.layer, s.site)},
                     {"tensor", blank == std::string::npos ? "" : s.site.substr(blank + 1)},
                     {"amax", json_of(s.amax)},
                     {"crest", json_of(s.crest)},
                     {"kurtosis", json_of(s.kurtosis)},
                     {"massive_rows", s.massive_rows},
                     {"rows", s.rows}});
  }
  // Squared errors add up over layers, and so do the parts that a share of them is.
  struct Sum {
    double error2 = 0, values = 0, rows = 0, first = 0;
  };
  std::map<std::pair<std::int64_t, std::string>, Sum> sums;
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const OutlierShareRecord& s : outliers.shares) {
    if (!s.error2) continue;
    const std::pair key{s.scheme_position, module_of(s.layer, s.site)};
    const auto [at, added] = sums.try_emplace(key);
    if (added) order.push_back(key);
    at->second.error2 += *s.error2;
    at->second.values += *s.error2 * s.massive_values.value_or(0);
    at->second.rows += *s.error2 * s.massive_rows.value_or(0);
    at->second.first += *s.error2 * s.first_tokens.value_or(0);
  }
  for (const auto& key : order) {
    const Sum& sum = sums[key];
    if (sum.error2 <= 0) continue;
    shares.push_back({{"scheme", outliers.schemes[static_cast<std::size_t>(key.first)].scheme},
                      {"module", key.second},
                      {"massive_values", sum.values / sum.error2},
                      {"massive_rows", sum.rows / sum.error2},
                      {"first_tokens", sum.first / sum.error2}});
  }
  return {{"run", outliers.run.id}, {"massive", massive}, {"sites", sites}, {"shares", shares}};
}

Json tasks_of(const ReportTasks& tasks) {
  Json rows = task_rows(tasks.scores);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i]["position"] = tasks.scores[i].scheme_position;
  return {{"run", tasks.run.id}, {"rows", rows}};
}

}  // namespace

std::uint16_t log_code(const Number& value) {
  constexpr double kSteps = 1024, kOctaves = 32, kLargest = kUndefined - 1;
  if (!value || !std::isfinite(*value) || *value < 0) return kUndefined;
  if (*value == 0) return 0;
  return static_cast<std::uint16_t>(
      std::clamp(1 + std::round(kSteps * (std::log2(*value) + kOctaves)), 1.0, kLargest));
}

std::string report_json(const ReportData& data) {
  Json document;
  document["max_kl"] = data.max_kl;
  for (const char* part : {"runs", "evaluations", "errors", "outliers", "tasks"})
    document[part] = Json::array();
  for (const RunRecord& run : data.runs) document["runs"].push_back(provenance_of(run));
  for (const ReportEvaluation& one : data.evaluations) document["evaluations"].push_back(evaluation_of(one));
  for (const ReportErrors& one : data.errors) document["errors"].push_back(errors_of(one));
  for (const ReportOutliers& one : data.outliers) document["outliers"].push_back(outliers_of(one));
  for (const ReportTasks& one : data.tasks) document["tasks"].push_back(tasks_of(one));
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace quantmap
