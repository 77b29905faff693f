#include "app/task_input.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "app/version.hpp"
#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "evals/task_data.hpp"
#include "evals/task_prompts.hpp"
#include "evals/task_scores.hpp"
#include "evals/task_tokens.hpp"
#include "evals/task_window.hpp"
#include "tokenizer/tokenizer.hpp"

namespace quantmap {

TaskInput read_task_input(const TaskRequestOptions& options, const std::string& model,
                          const Checkpoint& checkpoint, BosRule bos) {
  TaskInput input;
  const auto tokenizer = load_tokenizer(model);
  input.tokenizer_sha256 = tokenizer->fingerprint();
  const std::int64_t positions = checkpoint.config().max_position;
  const std::int64_t limit = positions > 0 ? positions : std::int64_t{1} << 30;
  const ItemRange range = options.items.empty() ? ItemRange{} : parse_item_range(options.items);
  const std::filesystem::path datasets = std::filesystem::exists("datasets") ? "datasets" : kDatasetsDir;
  Fingerprint print;
  for (const std::string& name : options.tasks) {
    LoadedTask loaded;
    loaded.task = find_task(name);
    for (const LoadedTask& other : input.tasks)
      if (other.task.name == loaded.task.name)
        fail_usage("--tasks", "task " + quoted(name) + " is given twice");
    const TaskData data = read_task_data(loaded.task, task_folders(loaded.task, options.data, datasets));
    const std::vector<ItemPrompts> prompts = task_prompts(loaded.task, data, range);
    loaded.items = task_tokens(loaded.task, data, prompts, *tokenizer, limit, bos);
    for (const TaskItem& item : loaded.items)
      for (const TaskRequest& request : item.requests)
        for (const auto* ids : {&request.context, &request.continuation})
          for (const std::int32_t id : *ids)
            if (id >= checkpoint.config().vocab_size)
              fail_input("tokenizer", model, "it gives ids that the model does not have",
                         fmt::format("ids below {}", checkpoint.config().vocab_size), std::to_string(id));
    print.add(fmt::format("{} {} {}\n", loaded.task.name, task_kind_name(loaded.task.kind),
                          fingerprint_of(loaded.items)));
    input.tasks.push_back(std::move(loaded));
  }
  input.sha256 = print.hex();
  return input;
}

std::vector<EvalWindow> task_windows(const TaskInput& input) {
  std::vector<EvalWindow> windows;
  for (const LoadedTask& task : input.tasks)
    for (const TaskItem& item : task.items) windows.push_back(item_window(item));
  return windows;
}

ItemPlace item_place(const TaskInput& input, std::int64_t index) {
  for (const LoadedTask& task : input.tasks) {
    const auto count = static_cast<std::int64_t>(task.items.size());
    if (index < count) return {&task, &task.items[static_cast<std::size_t>(index)]};
    index -= count;
  }
  fail("tasks", "", "no such item");
}

void add_item_records(const ItemPlace& place, std::int64_t position, const ItemAnswer& answer,
                      std::vector<TaskItemRecord>& records) {
  for (std::size_t c = 0; c < answer.loglikelihood.size(); ++c) {
    TaskItemRecord& record = records.emplace_back();
    record.scheme_position = position;
    record.task = place.task->task.name;
    record.item = place.item->index;
    record.choice = static_cast<std::int64_t>(c);
    record.loglikelihood = answer.loglikelihood[c];
    for (const std::int32_t gold : place.item->gold) record.gold = record.gold || std::cmp_equal(gold, c);
    record.greedy = answer.greedy[c] != 0;
  }
}

std::vector<TaskScoreRecord> task_score_records(const TaskInput& input,
                                                const std::vector<SchemeRecord>& schemes,
                                                const std::vector<std::vector<TaskItemRecord>>& of_scheme) {
  // [position][task] -> answers in the items' order.
  std::vector<std::map<std::string, std::vector<ItemAnswer>>> answers(of_scheme.size());
  for (std::size_t w = 0; w < of_scheme.size(); ++w)
    for (const TaskItemRecord& record : of_scheme[w]) {
      auto& of_task = answers[w][record.task];
      if (record.choice == 0) of_task.emplace_back();
      of_task.back().loglikelihood.push_back(
          record.loglikelihood.value_or(std::numeric_limits<double>::quiet_NaN()));
      of_task.back().greedy.push_back(record.greedy ? 1 : 0);
    }
  std::vector<TaskScoreRecord> records;
  for (const LoadedTask& loaded : input.tasks)
    for (std::size_t w = 0; w < answers.size(); ++w) {
      const std::string& name = loaded.task.name;
      const TaskScore s = score_task(loaded.task, loaded.items, answers[w][name], answers[0][name]);
      records.push_back({static_cast<std::int64_t>(w), schemes[w].scheme, name, s.items, s.acc, s.acc_stderr,
                         s.acc_norm, s.acc_norm_stderr, s.acc_bytes, s.acc_tokens, s.ppl, s.flips, s.status});
    }
  return records;
}

}  // namespace quantmap
