#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/amounts.hpp"
#include "reports/evaluation.hpp"
#include "reports/report_page.hpp"
#include "reports/tasks.hpp"

namespace quantmap {
namespace {

constexpr std::size_t kWorst = 3;  // places of each scheme

Table answers(const ReportEvaluation& evaluation) {
  Table table;
  const std::vector<std::string>& sentences = evaluation.answer.sentences;
  table.title = sentences.front();
  table.notes.assign(sentences.begin() + 1, sentences.end());
  return table;
}

// A scheme's places by the median row of their local error; attention weights have a divergence, no error.
std::vector<const LayerErrorRecord*> worst_places(const ReportErrors& errors, std::int64_t scheme) {
  std::vector<const LayerErrorRecord*> places;
  for (const LayerErrorRecord& e : errors.rows)
    if (e.scheme_position == scheme && e.scope == "local" && e.layer >= 0 && e.row_error_p50 &&
        *e.row_error_p50 > 0 && e.kind != "attention_weights")
      places.push_back(&e);
  std::stable_sort(places.begin(), places.end(),
                   [](const auto* a, const auto* b) { return *a->row_error_p50 > *b->row_error_p50; });
  places.resize(std::min(kWorst, places.size()));
  return places;
}

// The residual stream after the last layer.
Number error_at_the_end(const ReportErrors& errors, std::int64_t scheme) {
  const LayerErrorRecord* last = nullptr;
  for (const LayerErrorRecord& e : errors.rows)
    if (e.scheme_position == scheme && e.scope == "total" &&
        e.site == fmt::format("model.layers.{} output", e.layer) && (!last || e.layer > last->layer))
      last = &e;
  return last ? last->row_error_p50 : std::nullopt;
}

// One row a scheme: a pull request is no place for every layer.
Table where_it_hurts(const ReportErrors& errors) {
  Table table;
  table.title = fmt::format("Where it hurts (run {}): relative error of the median row", errors.run.id);
  table.columns = {{"scheme"}, {"residual stream at the end"}, {"worst places by themselves"}};
  for (const SchemeRecord& scheme : errors.schemes) {
    std::string places;
    for (const LayerErrorRecord* e : worst_places(errors, scheme.position))
      places += fmt::format("{}{} {}", places.empty() ? "" : "; ", e->site, three_digits(e->row_error_p50));
    const Number end = error_at_the_end(errors, scheme.position);
    if (places.empty() && !end.value_or(0)) continue;
    table.rows.push_back({scheme.scheme, three_digits(end), places.empty() ? "-" : places});
  }
  return table;
}

Table tasks_of(const ReportTasks& tasks) {
  Table table = task_summary(tasks.scores);
  table.title = fmt::format("Tasks (run {})", tasks.run.id);
  return table;
}

Table provenance(const ReportData& data) {
  Table table;
  table.title = "Where the numbers come from";
  table.columns = {{"run"}, {"command"}, {"model"},   {"model SHA-256"}, {"text"},    {"windows"},
                   {"ctx"}, {"compute"}, {"version"}, {"revision"},      {"finished"}};
  for (const RunRecord& run : data.runs)
    table.rows.push_back({run.id, run.command, run.model, run.model_sha256.substr(0, 12), run.text,
                          run.windows, run.ctx, run.compute, run.version, run.git_revision, run.finished_at});
  return table;
}

Table remark(const char* text) {
  Table table;
  table.notes.emplace_back(text);
  return table;
}

}  // namespace

std::string report_text(const ReportData& data, OutputFormat format, int width) {
  std::string text;
  const auto add = [&](const Table& table) {
    if (!text.empty()) text += '\n';
    text += write(table, format, width);
  };
  if (format == OutputFormat::csv) {
    std::vector<EvaluationRecord> rows;
    for (const ReportEvaluation& one : data.evaluations)
      rows.insert(rows.end(), one.rows.begin(), one.rows.end());
    return write(evaluation_rows(rows), format, width);
  }
  for (const ReportEvaluation& one : data.evaluations) {
    add(answers(one));
    add(evaluation_summary(one.run, one.rows));
  }
  if (data.evaluations.empty()) add(remark("No scheme was evaluated in these runs."));
  for (const ReportErrors& one : data.errors)
    if (const Table table = where_it_hurts(one); !table.rows.empty()) add(table);
  if (data.errors.empty()) add(remark("No layer errors were measured."));
  for (const ReportTasks& one : data.tasks) add(tasks_of(one));
  if (data.tasks.empty()) add(remark("No tasks were measured."));
  add(provenance(data));
  return text;
}

}  // namespace quantmap
