#include "evals/task_scores.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"

namespace quantmap {
namespace {

TaskItem item_of(std::vector<std::pair<std::int64_t, std::int64_t>> lengths, std::vector<std::int32_t> gold) {
  TaskItem item;
  for (const auto& [characters, bytes] : lengths) {
    TaskRequest request;
    request.context = {1};
    request.continuation = {2, 3};
    request.characters = characters;
    request.bytes = bytes;
    item.requests.push_back(std::move(request));
  }
  item.gold = std::move(gold);
  return item;
}
ItemAnswer answer_of(std::vector<double> likelihoods, std::vector<std::uint8_t> greedy = {}) {
  ItemAnswer answer;
  answer.greedy = greedy.empty() ? std::vector<std::uint8_t>(likelihoods.size(), 0) : std::move(greedy);
  answer.loglikelihood = std::move(likelihoods);
  return answer;
}

// B53: "no" (-4) against two CJK characters (-7), 6 bytes of UTF-8.
TEST(TaskScores, EachNormalizationHasItsName) {
  const TaskItem item = item_of({{2, 2}, {2, 6}}, {0});
  const ItemAnswer answer = answer_of({-4, -7});
  EXPECT_EQ(picked(item, answer, AnswerRule::likeliest), 0);
  EXPECT_EQ(picked(item, answer, AnswerRule::by_characters), 0);
  EXPECT_EQ(picked(item, answer, AnswerRule::by_bytes), 1);
  EXPECT_EQ(picked(item, answer, AnswerRule::by_tokens), 0);
  EXPECT_THROW(picked(item_of({{0, 0}, {1, 1}}, {0}), answer, AnswerRule::by_characters), Error);
}

TEST(TaskScores, TiesGoToTheLowestIndexAndNaNIsNeverRight) {
  EXPECT_EQ(picked(item_of({{1, 1}, {1, 1}}, {1}), answer_of({-2, -2}), AnswerRule::likeliest), 0);
  const TaskItem item = item_of({{1, 1}, {1, 1}}, {0});
  for (const auto& likelihoods : {std::vector<double>{NAN, -2}, {-2, NAN}}) {
    EXPECT_EQ(picked(item, answer_of(likelihoods), AnswerRule::likeliest), -1);
    for (const TaskKind kind : {TaskKind::multiple_choice, TaskKind::multiple_true, TaskKind::last_word})
      EXPECT_EQ(item_score(kind, item, answer_of(likelihoods, {1, 1})), 0);
  }
}

TEST(TaskScores, SeveralRightOnesAreScoredByTheirProbability) {
  const TaskItem item = item_of({{1, 1}, {1, 1}, {1, 1}}, {0, 2});
  const ItemAnswer answer = answer_of({std::log(0.02) - 900, std::log(0.05) - 900, std::log(0.03) - 900});
  EXPECT_NEAR(item_score(TaskKind::multiple_true, item, answer), 0.5, 1e-12);
}

TEST(TaskScores, HandValuesOfATask) {
  Task task;
  task.name = "t";
  task.by_characters = true;
  const std::vector<TaskItem> items(4, item_of({{1, 1}, {4, 4}}, {0}));
  // Right by likelihood: items 0, 1, 2; by characters: item 2.
  const std::vector<ItemAnswer> answers = {answer_of({-2, -3}), answer_of({-2, -4}), answer_of({-1, -8}),
                                           answer_of({-5, -3})},
                                reference = {answer_of({-2, -3}), answer_of({-4, -2}), answer_of({-1, -8}),
                                             answer_of({-1, -3})};
  const TaskScore s = score_task(task, items, answers, reference);
  EXPECT_EQ(s.items, 4);
  EXPECT_DOUBLE_EQ(s.acc.value(), 0.75);
  EXPECT_DOUBLE_EQ(s.acc_stderr.value(), 0.25);  // sqrt(0.25 / 4)
  EXPECT_DOUBLE_EQ(s.acc_norm.value(), 0.25);
  EXPECT_FALSE(s.acc_bytes || s.acc_tokens || s.ppl);
  EXPECT_EQ(s.flips, 2);
  EXPECT_EQ(s.status, "ok");
}

TEST(TaskScores, LastWordsCountGreedyOnesAndHaveAPerplexity) {
  Task task;
  task.kind = TaskKind::last_word;
  const std::vector<TaskItem> items(2, item_of({{1, 1}}, {0}));
  const std::vector<ItemAnswer> answers = {answer_of({-1}, {1}), answer_of({-3}, {0})};
  TaskScore s = score_task(task, items, answers, answers);
  EXPECT_DOUBLE_EQ(s.acc.value(), 0.5);
  EXPECT_DOUBLE_EQ(s.ppl.value(), std::exp(2.0));
  const std::vector<ItemAnswer> broken = {answer_of({NAN}, {1}), answer_of({-3}, {0})};
  s = score_task(task, items, broken, answers);
  EXPECT_FALSE(s.ppl);
  EXPECT_EQ(s.flips, 1);
  EXPECT_EQ(s.status, "1 of 2 items have a NaN and count as wrong");
}

}  // namespace
}  // namespace quantmap
