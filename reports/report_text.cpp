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
  table.title = evaluation.answer.front();
  table.notes.assign(evaluation.answer.begin() + 1, evaluation.answer.end());
  return table;
}

// The places that each scheme hurts most by the median row; attention weights have a divergence, no error.
Table worst_places(const ReportErrors& errors) {
  Table table;
  table.title = fmt::format("Where it hurts most (run {}): the median row's relative error", errors.run.id);
  table.columns = {{"scheme"}, {"layer"}, {"site"}, {"kind"}, {"scope"}, {"median row"}, {"pooled"}};
  for (const SchemeRecord& scheme : errors.schemes) {
    std::vector<const LayerErrorRecord*> places;
    for (const LayerErrorRecord& e : errors.rows)
      if (e.scheme_position == scheme.position && e.layer >= 0 && e.row_error_p50 && *e.row_error_p50 > 0 &&
          e.kind != "attention_weights")
        places.push_back(&e);
    std::stable_sort(places.begin(), places.end(),
                     [](const auto* a, const auto* b) { return *a->row_error_p50 > *b->row_error_p50; });
    for (std::size_t i = 0; i < std::min(kWorst, places.size()); ++i) {
      const LayerErrorRecord& e = *places[i];
      table.rows.push_back({scheme.scheme, e.layer, e.site, e.kind, e.scope, three_digits(e.row_error_p50),
                            three_digits(e.rel_error)});
    }
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
    if (const Table worst = worst_places(one); !worst.rows.empty()) add(worst);
  if (data.errors.empty()) add(remark("No layer errors were measured."));
  for (const ReportTasks& one : data.tasks) add(tasks_of(one));
  if (data.tasks.empty()) add(remark("No tasks were measured."));
  add(provenance(data));
  return text;
}

}  // namespace quantmap
