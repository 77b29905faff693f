// The records of a task: JSON lines (one object a line), or one JSON array of objects.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evals/task_file.hpp"

namespace quantmap {

struct TaskRecord {
  nlohmann::json value;  // an object
  std::string place;     // for messages: `line 12`, `record 3`
};

struct TaskData {
  TaskForm form;  // how these records are read
  std::string path, sha256;
  std::vector<TaskRecord> records;  // the task's own, in the file's order
  std::string shots_path, shots_sha256;
  std::vector<TaskRecord> shots;  // all that the file of examples holds; empty where the task has no shots
};

// Where a task's files are looked for, in order: `data` (--data; empty: none), for a task file its own
// folder, then `datasets`/cache (where datasets/fetch puts files) and `datasets`.
std::vector<std::filesystem::path> task_folders(const Task& task, const std::string& data,
                                                const std::filesystem::path& datasets);

// Throws Error (input): no file in any folder (the names and the folders), a line that is not a JSON object,
// no record of the task's own.
TaskData read_task_data(const Task& task, const std::vector<std::filesystem::path>& folders);

}  // namespace quantmap
