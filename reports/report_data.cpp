#include "reports/report_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "reports/answer.hpp"
#include "store/database.hpp"

namespace quantmap {
namespace {

constexpr const char* kReport = "report";

std::set<std::int64_t> runs_in(const std::filesystem::path& database, const char* view) {
  std::set<std::int64_t> ids;
  for (const auto& row : query_database(database, fmt::format("SELECT DISTINCT run FROM {}", view)).rows)
    ids.insert(std::get<std::int64_t>(row[0]));
  return ids;
}

// Which runs hold what.
struct Contents {
  std::set<std::int64_t> evaluations, errors, outliers, tasks;
};

Contents contents_of(const std::filesystem::path& database) {
  Contents contents;
  contents.evaluations = runs_in(database, "evaluations");
  contents.errors = runs_in(database, "layer_errors");
  // `eval` keeps the largest values of the residual stream too; statistics of every site are of `outliers`.
  contents.outliers = runs_in(database, "site_statistics");
  contents.tasks = runs_in(database, "task_scores");
  return contents;
}

bool is_complete(const RunRecord& run) { return run.status == "complete"; }

// The newest of `ids` of this model (any, where the model is empty); null: none.
const RunRecord* newest(std::span<const RunRecord> runs, const std::set<std::int64_t>& ids,
                        const std::string& model_sha256) {
  for (std::size_t i = runs.size(); i-- > 0;)
    if (is_complete(runs[i]) && ids.contains(runs[i].id) &&
        (model_sha256.empty() || runs[i].model_sha256 == model_sha256))
      return &runs[i];
  return nullptr;
}

std::set<std::int64_t> newest_runs(std::span<const RunRecord> runs, const Contents& contents,
                                   const std::string& file) {
  std::set<std::int64_t> all;
  for (const auto* ids : {&contents.evaluations, &contents.errors, &contents.outliers, &contents.tasks})
    all.insert(ids->begin(), ids->end());
  const RunRecord* main = newest(runs, contents.evaluations, "");
  if (!main) main = newest(runs, all, "");
  if (!main)
    fail_input(kReport, file, "nothing to report", "a complete run of eval, error or outliers",
               runs.empty() ? "no run" : fmt::format("{} runs without results", runs.size()));
  std::set<std::int64_t> chosen{main->id};
  // Runs of `error` have every kind; what `eval` keeps of layers comes with its own run.
  std::set<std::int64_t> errors;
  std::set_difference(contents.errors.begin(), contents.errors.end(), contents.evaluations.begin(),
                      contents.evaluations.end(), std::inserter(errors, errors.end()));
  for (const auto* ids : {&std::as_const(errors), &contents.outliers, &contents.tasks})
    if (const RunRecord* run = newest(runs, *ids, main->model_sha256)) chosen.insert(run->id);
  return chosen;
}

std::set<std::int64_t> named_runs(std::span<const RunRecord> runs, std::span<const std::int64_t> wanted,
                                  const std::string& file) {
  std::set<std::int64_t> chosen;
  for (const std::int64_t id : wanted) {
    const auto at = std::find_if(runs.begin(), runs.end(), [&](const RunRecord& r) { return r.id == id; });
    if (at == runs.end())
      fail_input(kReport, file, fmt::format("no run {}", id), "a run of this database",
                 runs.empty() ? "no run" : fmt::format("runs {} to {}", runs.front().id, runs.back().id));
    if (!is_complete(*at))
      fail_input(kReport, file, fmt::format("run {}", id), "a complete run",
                 fmt::format("one that is {}", at->status));
    chosen.insert(id);
  }
  return chosen;
}

ReportEvaluation evaluation_of(const Database& db, const RunRecord& run, double max_kl) {
  ReportEvaluation evaluation{run, db.evaluations(run.id), db.comparisons(run.id), {}};
  evaluation.answer = answer(evaluation, max_kl);
  return evaluation;
}

}  // namespace

ReportData read_report(const std::filesystem::path& database, std::span<const std::int64_t> runs,
                       double max_kl) {
  const Database db = Database::open_read_only(database);
  const std::vector<RunRecord> all = db.runs();
  const Contents contents = contents_of(database);
  const std::set<std::int64_t> chosen =
      runs.empty() ? newest_runs(all, contents, database.string()) : named_runs(all, runs, database.string());
  ReportData data;
  data.max_kl = max_kl;
  for (const RunRecord& run : all) {
    if (!chosen.contains(run.id)) continue;
    data.runs.push_back(run);
    if (contents.evaluations.contains(run.id)) data.evaluations.push_back(evaluation_of(db, run, max_kl));
    if (contents.errors.contains(run.id))
      data.errors.push_back({run, db.schemes(run.id), db.layer_errors(run.id)});
    if (contents.outliers.contains(run.id))
      data.outliers.push_back({run, db.schemes(run.id), db.outliers(run.id), db.site_statistics(run.id),
                               db.outlier_shares(run.id)});
    if (contents.tasks.contains(run.id)) data.tasks.push_back({run, db.task_scores(run.id)});
  }
  return data;
}

}  // namespace quantmap
