// Task scores as `eval --tasks` prints them: a table for people, every field for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "core/table.hpp"
#include "store/records.hpp"

namespace quantmap {

// By task, the reference first; accuracies in percent with their standard errors.
Table task_summary(std::span<const TaskScoreRecord> scores);
nlohmann::ordered_json task_rows(std::span<const TaskScoreRecord> scores);

}  // namespace quantmap
