// What `report` says about chosen runs, read once from the database: the answer, the schemes, where it hurts,
// tasks, provenance. The writers (page/, markdown) only draw it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "store/records.hpp"

namespace quantmap {

struct Answer {
  std::vector<std::string> sentences;  // the first is the one to act on
  std::int64_t pick = -1;              // position of the scheme that it names to take; -1: none
};

// The schemes of one run on one text.
struct ReportEvaluation {
  RunRecord run;
  std::vector<EvaluationRecord> rows;         // in scheme order, the noise floor last where there is one
  std::vector<ComparisonRecord> comparisons;  // of every two schemes; empty in runs older than schema 3
  Answer answer;                              // answer.hpp
};

struct ReportErrors {
  RunRecord run;
  std::vector<SchemeRecord> schemes;
  std::vector<LayerErrorRecord> rows;
};

struct ReportOutliers {
  RunRecord run;
  std::vector<SchemeRecord> schemes;
  std::vector<OutlierRecord> largest;
  std::vector<SiteStatisticsRecord> sites;
  std::vector<OutlierShareRecord> shares;
};

struct ReportTasks {
  RunRecord run;
  std::vector<TaskScoreRecord> scores;  // by task, the reference first
};

struct ReportData {
  double max_kl = 0;
  std::vector<ReportEvaluation> evaluations;
  std::vector<ReportErrors> errors;
  std::vector<ReportOutliers> outliers;
  std::vector<ReportTasks> tasks;
  std::vector<RunRecord> runs;  // all that the report rests on, by id
};

// runs: which; none: the newest complete run with evaluations (without one, the newest complete run), and of
// the same model the newest with layer errors of schemes, with outliers and with tasks. The database is only
// read. Error: a file that is no results database, no complete run in it, a run that is absent or unfinished.
ReportData read_report(const std::filesystem::path& database, std::span<const std::int64_t> runs,
                       double max_kl);

}  // namespace quantmap
