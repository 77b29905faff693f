// What `eval` prints: a table for people (reference first, schemes by KL), every field for programs
// (product.md, `eval --format json`).
#pragma once

#include <span>
#include <string>

#include "core/table.hpp"
#include "reports/writers.hpp"
#include "store/records.hpp"

namespace quantmap {

inline constexpr const char* kNoiseFloor = "noise floor";  // SchemeRecord::scheme of that row

// Evaluations in scheme order, the noise floor last where there is one; without a text there is no table of
// them. With CSV the tasks and the comparisons are left out (the views task_scores and comparisons have
// them).
std::string write_evaluation(const EvaluationResults& results, OutputFormat format, int width);

Table evaluation_summary(const RunRecord& run, std::span<const EvaluationRecord> evaluations);
Table evaluation_rows(std::span<const EvaluationRecord> evaluations);  // every field, in scheme order
std::string evaluation_json(const EvaluationResults& results);

}  // namespace quantmap
