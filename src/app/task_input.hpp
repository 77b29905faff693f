// The tasks of `eval --tasks`, read, made into prompts and tokens, and laid out as windows of the engine.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "evals/protocol.hpp"
#include "evals/task_file.hpp"
#include "evals/task_items.hpp"
#include "store/records.hpp"

namespace quantmap {

struct TaskRequestOptions {
  std::vector<std::string> tasks;  // names or FILE.json
  std::string items;               // A-B, zero-based, inclusive; empty: all
  std::string data;                // folder in the layout of datasets/; empty: datasets
};

struct LoadedTask {
  Task task;
  std::vector<TaskItem> items;
};

struct TaskInput {
  std::vector<LoadedTask> tasks;
  std::string sha256;  // of all that the scores depend on beside model and schemes
  std::string tokenizer_sha256;
};
// Throws Error: usage for a task given twice, else as find_task, read_task_data, task_prompts and
// task_tokens.
TaskInput read_task_input(const TaskRequestOptions& options, const std::string& model,
                          const Checkpoint& checkpoint, BosRule bos);

// One window an item, tasks in order.
std::vector<EvalWindow> task_windows(const TaskInput& input);

// Which task and item a window behind the texts' belongs to; index counts from the first item.
struct ItemPlace {
  const LoadedTask* task = nullptr;
  const TaskItem* item = nullptr;
};
ItemPlace item_place(const TaskInput& input, std::int64_t index);

// Rows of an item's answer.
void add_item_records(const ItemPlace& place, std::int64_t position, const ItemAnswer& answer,
                      std::vector<TaskItemRecord>& records);
// Scores of every task from stored items, `of_scheme[position]` of each; schemes[position] names them.
std::vector<TaskScoreRecord> task_score_records(const TaskInput& input,
                                                const std::vector<SchemeRecord>& schemes,
                                                const std::vector<std::vector<TaskItemRecord>>& of_scheme);

}  // namespace quantmap
