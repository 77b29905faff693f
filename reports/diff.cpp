#include "reports/diff.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reports/comparisons.hpp"
#include "reports/run_document.hpp"

namespace quantmap {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLayersShown = 20;

struct Field {
  const char* name;
  std::string (*of)(const RunRecord&);
};
// What may differ between two runs and explain a difference; times and the command line always do.
constexpr Field kFields[] = {
    {"command", [](const RunRecord& r) { return r.command; }},
    {"model", [](const RunRecord& r) { return r.model; }},
    {"model SHA-256", [](const RunRecord& r) { return r.model_sha256; }},
    {"tokenizer SHA-256", [](const RunRecord& r) { return r.tokenizer_sha256; }},
    {"text", [](const RunRecord& r) { return r.text; }},
    {"token ids SHA-256", [](const RunRecord& r) { return r.token_ids_sha256; }},
    {"protocol", [](const RunRecord& r) { return r.protocol; }},
    {"ctx", [](const RunRecord& r) { return std::to_string(r.ctx); }},
    {"stride", [](const RunRecord& r) { return std::to_string(r.stride); }},
    {"windows", [](const RunRecord& r) { return std::to_string(r.windows); }},
    {"score", [](const RunRecord& r) { return r.score; }},
    {"BOS", [](const RunRecord& r) { return r.bos; }},
    {"compute", [](const RunRecord& r) { return r.compute; }},
    {"device", [](const RunRecord& r) { return r.device; }},
    {"machine", [](const RunRecord& r) { return r.machine; }},
    {"threads", [](const RunRecord& r) { return std::to_string(r.threads); }},
    {"version", [](const RunRecord& r) { return r.version; }},
    {"revision", [](const RunRecord& r) { return r.git_revision; }},
};

std::string digits(const Number& value, int count = 4) {
  return value ? fmt::format("{:.{}g}", *value, count) : "-";
}
std::string signed_interval(const Number& value, const Number& low, const Number& high, double scale = 1) {
  if (!value) return "-";
  std::string text = fmt::format("{:+.3g}", scale * *value);
  if (low && high) text += fmt::format(" [{:+.3g}, {:+.3g}]", scale * *low, scale * *high);
  return text;
}

Table provenance(const RunDiff& diff) {
  Table table;
  const RunRecord &a = diff.first, &b = diff.second;
  table.title = fmt::format("Run {} ({}) and run {} ({}): what differs between them", a.id, a.started_at,
                            b.id, b.started_at);
  table.columns = {{""}, {fmt::format("run {}", a.id)}, {fmt::format("run {}", b.id)}};
  for (const Field& field : kFields)
    if (field.of(a) != field.of(b)) table.rows.push_back({std::string(field.name), field.of(a), field.of(b)});
  if (table.rows.empty()) table.title += ": nothing";
  table.notes = diff.notes;
  const auto only = [&](const std::vector<std::string>& schemes, std::int64_t run) {
    if (!schemes.empty())
      table.notes.push_back(fmt::format("only in run {}: {}", run, fmt::join(schemes, ", ")));
  };
  only(diff.only_first, a.id);
  only(diff.only_second, b.id);
  return table;
}

std::string name_of(const ComparisonRecord& c) {
  return c.scheme == c.than_scheme ? c.scheme : c.than_scheme + " / " + c.scheme;
}

Table metric_table(const RunDiff& diff, std::string_view metric, const std::string& title,
                   const char* change) {
  Table table;
  table.title = title;
  table.columns = {{"scheme"},
                   {fmt::format("run {}", diff.first.id)},
                   {fmt::format("run {}", diff.second.id)},
                   {change},
                   {"p after Holm"},
                   {"run 2 is"}};
  table.columns.back().name = fmt::format("run {} is", diff.second.id);
  bool paired = true;
  for (const MetricChange& m : diff.metrics) {
    if (m.metric != metric) continue;
    paired = paired && m.paired;
    table.rows.push_back({name_of(m.change), digits(m.first), digits(m.second),
                          signed_interval(m.change.difference, m.change.low, m.change.high),
                          digits(m.change.p_holm, 2), verdict_text(m.change)});
  }
  table.notes.emplace_back(paired ? "paired by window: both runs scored the same tokens; [95 % interval]"
                                  : "not paired: the runs scored other tokens; [95 % interval]");
  return table;
}

Table task_table(const RunDiff& diff) {
  Table table;
  table.title = "Tasks: accuracy, percent";
  table.columns = {{"task"},
                   {"scheme"},
                   {"items"},
                   {fmt::format("run {}", diff.first.id)},
                   {fmt::format("run {}", diff.second.id)},
                   {"difference [95 %]"},
                   {fmt::format("right in {} alone", diff.first.id)},
                   {fmt::format("in {} alone", diff.second.id)},
                   {"McNemar p"},
                   {fmt::format("run {} is", diff.second.id)}};
  const auto percent = [](const Number& value) { return value ? fmt::format("{:.2f}", 100 * *value) : "-"; };
  for (const TaskChange& t : diff.tasks)
    table.rows.push_back({t.task, t.scheme, t.items, percent(t.first), percent(t.second),
                          signed_interval(t.difference, t.low, t.high, 100), t.only_first, t.only_second,
                          digits(t.p, 2), t.verdict});
  return table;
}

Table layer_table(const RunDiff& diff) {
  Table table;
  table.title = fmt::format("Layer errors: {} rows in both runs, {} equal to the bit", diff.layer_rows,
                            diff.layer_equal);
  table.columns = {{"site"},
                   {"scheme"},
                   {"scope"},
                   {"kind"},
                   {fmt::format("median row, run {}", diff.first.id), 4},
                   {fmt::format("run {}", diff.second.id), 4},
                   {fmt::format("pooled, run {}", diff.first.id), 4},
                   {fmt::format("run {} ", diff.second.id), 4}};
  const auto cell = [](const Number& value) { return value ? Value(*value) : Value(); };
  for (std::size_t i = 0; i < std::min(kLayersShown, diff.layers.size()); ++i) {
    const LayerErrorRecord &a = diff.layers[i].first, &b = diff.layers[i].second;
    table.rows.push_back({a.site, diff.layers[i].scheme, a.scope, a.kind, cell(a.row_error_p50),
                          cell(b.row_error_p50), cell(a.rel_error), cell(b.rel_error)});
  }
  if (diff.layers.size() > kLayersShown)
    table.notes.push_back(
        fmt::format("the {} largest changes of {}; --format json has all", kLayersShown, diff.layers.size()));
  return table;
}

bool has(const RunDiff& diff, std::string_view metric) {
  return std::any_of(diff.metrics.begin(), diff.metrics.end(),
                     [&](const MetricChange& m) { return m.metric == metric; });
}

std::vector<Table> tables_of(const RunDiff& diff) {
  std::vector<Table> tables = {provenance(diff)};
  if (has(diff, "kl_mean"))
    tables.push_back(
        metric_table(diff, "kl_mean", "KL to the run's own reference (nats per token)", "difference"));
  if (has(diff, "ln_ppl_ratio"))
    tables.push_back(metric_table(diff, "ln_ppl_ratio", "Perplexity", "ln of the ratio"));
  if (!diff.tasks.empty()) tables.push_back(task_table(diff));
  if (diff.layer_rows > 0) tables.push_back(layer_table(diff));
  return tables;
}

// Without rows, the title and the notes say all.
std::string written(const Table& table, OutputFormat format, int width) {
  if (!table.rows.empty()) return write(table, format, width);
  std::string text = table.title + "\n";
  for (const std::string& note : table.notes) text += "\n" + note + "\n";
  return text;
}

Json json_document(const RunDiff& diff) {
  Json document;
  document["runs"] = {run_document(diff.first), run_document(diff.second)};
  document["differs"] = Json::array();
  for (const Field& field : kFields)
    if (field.of(diff.first) != field.of(diff.second))
      document["differs"].push_back(
          {{"field", field.name}, {"first", field.of(diff.first)}, {"second", field.of(diff.second)}});
  document["rows"] = Json::array();
  for (const MetricChange& m : diff.metrics) {
    Json row = comparison_rows({&m.change, 1})[0];
    row["first"] = json_of(m.first);
    row["second"] = json_of(m.second);
    row["paired"] = m.paired;
    document["rows"].push_back(std::move(row));
  }
  document["tasks"] = Json::array();
  for (const TaskChange& t : diff.tasks)
    document["tasks"].push_back({{"task", t.task},
                                 {"scheme", t.scheme},
                                 {"items", t.items},
                                 {"first", json_of(t.first)},
                                 {"second", json_of(t.second)},
                                 {"difference", json_of(t.difference)},
                                 {"stderr", json_of(t.stderr_of_difference)},
                                 {"low", json_of(t.low)},
                                 {"high", json_of(t.high)},
                                 {"only_first", t.only_first},
                                 {"only_second", t.only_second},
                                 {"p", json_of(t.p)},
                                 {"verdict", t.verdict}});
  Json layers = Json::array();
  for (const LayerChange& l : diff.layers)
    layers.push_back({{"layer", l.first.layer},
                      {"site", l.first.site},
                      {"scheme", l.scheme},
                      {"scope", l.first.scope},
                      {"kind", l.first.kind},
                      {"row_error_p50", {json_of(l.first.row_error_p50), json_of(l.second.row_error_p50)}},
                      {"rel_error", {json_of(l.first.rel_error), json_of(l.second.rel_error)}}});
  document["layer_errors"] = {
      {"compared", diff.layer_rows}, {"equal", diff.layer_equal}, {"changed", layers}};
  document["only_first"] = diff.only_first;
  document["only_second"] = diff.only_second;
  document["notes"] = diff.notes;
  return document;
}

}  // namespace

std::string write_diff(const RunDiff& diff, OutputFormat format, int width) {
  if (format == OutputFormat::json)
    return json_document(diff).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (format == OutputFormat::csv) {
    Table table;
    const Json document = json_document(diff);
    for (const Json& row : document["rows"]) add_row(table, row);
    return write(table, format, width);
  }
  std::vector<std::string> parts;
  for (const Table& table : tables_of(diff)) parts.push_back(written(table, format, width));
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace quantmap
