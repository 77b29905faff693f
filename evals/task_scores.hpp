// What a scheme's answers to a task's items are worth (formats.md, section 11, Multiple choice; conventions
// of lm-evaluation-harness).
//
// clang-format off
//   acc         the first argmax of the log-likelihoods LL is right; last_word: the continuation is greedy;
//               multiple_true: the mean of sum_gold exp(LL) / sum exp(LL)
//   acc_norm    first argmax of LL / code points of the choice, without the delimiter before it
//   acc_bytes   … / its bytes in UTF-8;  acc_tokens  … / its tokens, delimiter and all
//   ppl         last_word: exp(-mean LL)
//   stderr      sample standard deviation (n - 1) of the items' scores / sqrt n
// clang-format on
// An item with a NaN among its log-likelihoods is wrong by every rule, and counted. Ties: the lowest index.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/number.hpp"
#include "evals/task_file.hpp"
#include "evals/task_items.hpp"

namespace quantmap {

enum class AnswerRule : std::uint8_t { likeliest, by_characters, by_bytes, by_tokens };

// The first request with the largest LL over its length; -1 where one is NaN. Throws Error (input) for a
// length of 0.
std::int64_t picked(const TaskItem& item, const ItemAnswer& answer, AnswerRule rule);

// Score of an item by a task's own rule, 0 to 1.
double item_score(TaskKind kind, const TaskItem& item, const ItemAnswer& answer);

struct TaskScore {
  std::int64_t items = 0;
  Number acc, acc_stderr, acc_norm, acc_norm_stderr, acc_bytes, acc_tokens, ppl;
  std::int64_t flips = 0;  // items whose right or wrong differs from the reference's; multiple_true: none
  std::int64_t nan_items = 0;
  std::int64_t cut_items = 0;  // longer than the context, cut on the left
  std::string status = "ok";
};
// answers, reference: one an item.
TaskScore score_task(const Task& task, std::span<const TaskItem> items, std::span<const ItemAnswer> answers,
                     std::span<const ItemAnswer> reference);

}  // namespace quantmap
