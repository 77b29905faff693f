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

// evaluations: in scheme order, the noise floor last where there is one.
// tasks: as the database gives them; with CSV they are left out (the view task_scores has them).
std::string write_evaluation(const RunRecord& run, std::span<const EvaluationRecord> evaluations,
                             std::span<const TaskScoreRecord> tasks, OutputFormat format, int width);

Table evaluation_summary(const RunRecord& run, std::span<const EvaluationRecord> evaluations);
Table evaluation_rows(std::span<const EvaluationRecord> evaluations);  // every field, in scheme order
std::string evaluation_json(const RunRecord& run, std::span<const EvaluationRecord> evaluations,
                            std::span<const TaskScoreRecord> tasks = {});

}  // namespace quantmap
