#include "reports/tasks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reports/run_document.hpp"

namespace quantmap {
namespace {

std::string percent(const Number& value, const Number& error) {
  if (!value) return "-";
  return error ? fmt::format("{:.2f} ± {:.2f}", 100 * *value, 100 * *error)
               : fmt::format("{:.2f}", 100 * *value);
}

}  // namespace

Table task_summary(std::span<const TaskScoreRecord> scores) {
  Table table;
  table.title = "Tasks";
  table.columns = {{"task"}, {"scheme"}, {"items"}, {"acc %"}, {"acc_norm %"}, {"perplexity"}, {"flips"}};
  for (const TaskScoreRecord& s : scores) {
    table.rows.push_back({s.task, s.scheme, s.items, percent(s.acc, s.acc_stderr),
                          percent(s.acc_norm, s.acc_norm_stderr),
                          s.ppl ? Value(fmt::format("{:.4g}", *s.ppl)) : Value(std::string("-")), s.flips});
    const std::string note = fmt::format("{}: {}", s.task, s.status);
    if (s.status != "ok" && std::find(table.notes.begin(), table.notes.end(), note) == table.notes.end())
      table.notes.push_back(note);
  }
  table.notes.emplace_back(
      "flips: items that the reference got right and the scheme wrong, or the other way round");
  return table;
}

nlohmann::ordered_json task_rows(std::span<const TaskScoreRecord> scores) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const TaskScoreRecord& s : scores)
    rows.push_back({{"scheme", s.scheme},
                    {"task", s.task},
                    {"items", s.items},
                    {"acc", json_of(s.acc)},
                    {"acc_stderr", json_of(s.acc_stderr)},
                    {"acc_norm", json_of(s.acc_norm)},
                    {"acc_norm_stderr", json_of(s.acc_norm_stderr)},
                    {"acc_bytes", json_of(s.acc_bytes)},
                    {"acc_tokens", json_of(s.acc_tokens)},
                    {"ppl", json_of(s.ppl)},
                    {"flips", s.flips},
                    {"status", s.status}});
  return rows;
}

}  // namespace quantmap
