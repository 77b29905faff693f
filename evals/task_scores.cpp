#include "evals/task_scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/sum.hpp"

namespace quantmap {
namespace {

bool has_nan(const ItemAnswer& answer) {
  return std::any_of(answer.loglikelihood.begin(), answer.loglikelihood.end(),
                     [](double x) { return std::isnan(x); });
}

double length_of(const TaskRequest& request, AnswerRule rule) {
  switch (rule) {
    case AnswerRule::likeliest:
      return 1;
    case AnswerRule::by_characters:
      return static_cast<double>(request.characters);
    case AnswerRule::by_bytes:
      return static_cast<double>(request.bytes);
    case AnswerRule::by_tokens:
      return static_cast<double>(request.continuation.size());
  }
  return 1;
}

bool is_gold(const TaskItem& item, std::int64_t request) {
  return std::find(item.gold.begin(), item.gold.end(), request) != item.gold.end();
}

struct Mean {
  Number value, error;
};
Mean mean_of(const std::vector<double>& scores) {
  const auto n = static_cast<double>(scores.size());
  if (scores.empty()) return {};
  Sum sum, squares;
  for (const double s : scores) sum.add(s);
  Mean mean;
  mean.value = sum.value() / n;
  if (scores.size() < 2) return mean;
  for (const double s : scores) squares.add((s - *mean.value) * (s - *mean.value));
  mean.error = std::sqrt(squares.value() / (n - 1) / n);
  return mean;
}

}  // namespace

std::int64_t picked(const TaskItem& item, const ItemAnswer& answer, AnswerRule rule) {
  if (has_nan(answer)) return -1;
  std::int64_t best = -1;
  double most = 0;
  for (std::size_t i = 0; i < item.requests.size(); ++i) {
    const double length = length_of(item.requests[i], rule);
    if (length <= 0)
      fail_input("task item", fmt::format("{}", item.index), "a choice of no length", "1 or more", "0");
    const double value = answer.loglikelihood[i] / length;
    if (best >= 0 && !(value > most)) continue;
    best = static_cast<std::int64_t>(i);
    most = value;
  }
  return best;
}

double item_score(TaskKind kind, const TaskItem& item, const ItemAnswer& answer) {
  if (has_nan(answer)) return 0;
  switch (kind) {
    case TaskKind::multiple_choice:
      return is_gold(item, picked(item, answer, AnswerRule::likeliest)) ? 1 : 0;
    case TaskKind::last_word:
      return answer.greedy[0];
    case TaskKind::multiple_true: {
      const double top = *std::max_element(answer.loglikelihood.begin(), answer.loglikelihood.end());
      Sum all, right;
      for (std::size_t i = 0; i < answer.loglikelihood.size(); ++i) {
        const double mass = std::exp(answer.loglikelihood[i] - top);
        all.add(mass);
        if (is_gold(item, static_cast<std::int64_t>(i))) right.add(mass);
      }
      return right.value() / all.value();
    }
  }
  return 0;
}

TaskScore score_task(const Task& task, std::span<const TaskItem> items, std::span<const ItemAnswer> answers,
                     std::span<const ItemAnswer> reference) {
  if (answers.size() != items.size() || reference.size() != items.size())
    fail("task " + task.name, "", "answers and items differ in number");
  TaskScore score;
  score.items = static_cast<std::int64_t>(items.size());
  std::vector<double> own, characters, bytes, tokens;
  Sum likelihood;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const TaskItem& item = items[i];
    own.push_back(item_score(task.kind, item, answers[i]));
    const auto by = [&](bool applies, AnswerRule rule, std::vector<double>& scores) {
      if (applies) scores.push_back(is_gold(item, picked(item, answers[i], rule)) ? 1 : 0);
    };
    by(task.by_characters, AnswerRule::by_characters, characters);
    by(task.by_bytes, AnswerRule::by_bytes, bytes);
    by(task.by_tokens, AnswerRule::by_tokens, tokens);
    if (task.kind != TaskKind::multiple_true && own.back() != item_score(task.kind, item, reference[i]))
      ++score.flips;
    likelihood.add(answers[i].loglikelihood[0]);
    score.nan_items += has_nan(answers[i]) ? 1 : 0;
    score.cut_items += std::any_of(item.requests.begin(), item.requests.end(),
                                   [](const TaskRequest& r) { return r.cut_tokens > 0; })
                           ? 1
                           : 0;
  }
  const Mean acc = mean_of(own), norm = mean_of(characters);
  score.acc = acc.value;
  score.acc_stderr = acc.error;
  score.acc_norm = norm.value;
  score.acc_norm_stderr = norm.error;
  score.acc_bytes = mean_of(bytes).value;
  score.acc_tokens = mean_of(tokens).value;
  if (task.kind == TaskKind::last_word && score.nan_items == 0)
    score.ppl = std::exp(-likelihood.value() / static_cast<double>(items.size()));
  std::vector<std::string> reasons;
  if (score.nan_items > 0)
    reasons.push_back(
        fmt::format("{} of {} items have a NaN and count as wrong", score.nan_items, score.items));
  if (score.cut_items > 0)
    reasons.push_back(
        fmt::format("{} items are longer than the context and were cut on the left", score.cut_items));
  if (!reasons.empty()) score.status = fmt::format("{}", fmt::join(reasons, "; "));
  return score;
}

}  // namespace quantmap
