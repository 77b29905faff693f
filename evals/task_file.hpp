// A task as its JSON file describes it (docs/tasks.md): where its records are, and how a record becomes a
// context, continuations and what is right. Built-in ones are evals/tasks/NAME.json, compiled in.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evals/task_template.hpp"

namespace quantmap {

enum class TaskKind : std::uint8_t {
  multiple_choice,  // one continuation (or context) of several is right
  multiple_true,    // several are: scored by the probability that they get (TruthfulQA mc2)
  last_word,        // one continuation: its log-likelihood, and whether it is the greedy one (LAMBADA)
};
const char* task_kind_name(TaskKind kind);

// How a record is read. Exactly one of the two forms: a context and choices (last_word: its continuation), or
// contexts and the continuation that they share.
struct TaskForm {
  std::string file;       // relative to a folder of data
  std::string condition;  // a path that the file's first record must have; empty: none
  TextTemplate description, context;
  std::optional<ListTemplate> contexts;
  ListTemplate choices;  // of one text with contexts and with last_word
  TextTemplate gold;     // an index, or what is looked for in `among`
  std::optional<ListTemplate> among;
  bool partial() const { return contexts.has_value(); }  // partial evaluation (WinoGrande)
};

struct Task {
  std::string name;    // as asked for: hellaswag, mmlu_anatomy, or the stem of a file's name
  std::string source;  // for messages: `built in`, or the file's path
  std::string about;
  TaskKind kind = TaskKind::multiple_choice;
  std::vector<TaskForm> forms;  // tried in order: the first whose file is there and whose condition holds
  std::string delimiter = " ";  // between a context and its continuation
  bool by_characters = false, by_bytes = false, by_tokens = false;  // length-normalized accuracies that apply
  // Only records whose value at the path `where_path` is `where_value`; empty: all.
  std::string where_path, where_value;
  // Solved examples before each item: the first `shots` records of the first file that is there, without the
  // item itself, and only those with the item's own value at `shots_same` (empty: any).
  std::int64_t shots = 0;
  std::vector<std::string> shots_data;
  std::string shots_same;
  std::string shot_separator = "\n\n";
};

struct KnownTask {
  std::string name;  // mmlu_SUBJECT: SUBJECT stands for lower-case letters, digits and underscores
  std::string about;
};
std::vector<KnownTask> known_tasks();

// A built-in task by name, or a task file by a path that ends in .json. Throws Error: usage for an unknown
// name (the known are listed), input for a file that cannot be used (file, key, expected, found).
Task find_task(const std::string& name_or_path);

}  // namespace quantmap
