// A task's records as text: what is put before the model, and whose likelihood is asked. Conventions of
// lm-evaluation-harness (docs/tasks.md): description, examples with their answers, the item's context; a
// delimiter before each continuation.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "evals/task_data.hpp"
#include "evals/task_file.hpp"

namespace quantmap {

struct TaskPrompt {
  std::string context;       // may be empty
  std::string continuation;  // delimiter and choice
  std::string choice;        // never empty: the lengths of acc_norm and acc_bytes are its own
};

struct ItemPrompts {
  std::int64_t index = 0;  // among the task's own records, zero-based
  std::string place;       // for messages: `line 12`
  std::vector<TaskPrompt> prompts;
  std::vector<std::int32_t> gold;  // ascending; one but for multiple_true
};

struct ItemRange {
  std::int64_t first = 0, last = std::numeric_limits<std::int64_t>::max();  // inclusive
};
// `A-B` or `A`. Throws Error (usage).
ItemRange parse_item_range(std::string_view text);

// The items of a range; what of it lies beyond the last record is not there. Throws Error (input) naming the
// record: a missing field, no choices or an empty one, a gold that is none of them, no record in the range,
// too few examples for the shots.
std::vector<ItemPrompts> task_prompts(const Task& task, const TaskData& data, ItemRange range = {});

}  // namespace quantmap
