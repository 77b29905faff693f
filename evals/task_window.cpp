#include "evals/task_window.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace quantmap {
namespace {

void require_tokens(const TaskItem& item) {
  const auto bad = [&](const char* expected, const char* found) {
    fail_input("task item", fmt::format("{}", item.index), "cannot be scored", expected, found);
  };
  if (item.requests.empty()) bad("one continuation or more", "none");
  for (const TaskRequest& request : item.requests) {
    if (request.context.empty()) bad("a context of one token or more", "an empty one");
    if (request.continuation.empty()) bad("continuations of one token or more", "an empty one");
  }
}

// What goes in for a request: everything but its last token.
std::vector<std::int32_t> input_of(const TaskRequest& request) {
  std::vector<std::int32_t> ids = request.context;
  ids.insert(ids.end(), request.continuation.begin(), request.continuation.end() - 1);
  return ids;
}

}  // namespace

EvalWindow item_window(const TaskItem& item) {
  require_tokens(item);
  std::vector<std::vector<std::int32_t>> inputs;
  std::size_t shared = item.requests[0].context.size() - 1;
  for (const TaskRequest& request : item.requests) {
    inputs.push_back(input_of(request));
    shared = std::min(shared, request.context.size() - 1);
    const auto end = inputs[0].begin() + static_cast<std::ptrdiff_t>(shared);
    const auto parted = std::mismatch(inputs[0].begin(), end, inputs.back().begin(), inputs.back().end());
    shared = static_cast<std::size_t>(parted.first - inputs[0].begin());
  }
  EvalWindow window;
  window.prefix = static_cast<std::int64_t>(shared);
  window.ids.assign(inputs[0].begin(), inputs[0].begin() + window.prefix);
  window.targets.assign(shared, -1);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TaskRequest& request = item.requests[i];
    const auto begin = static_cast<std::int64_t>(window.ids.size());
    window.ids.insert(window.ids.end(), inputs[i].begin() + window.prefix, inputs[i].end());
    window.branches.push_back({begin, static_cast<std::int64_t>(window.ids.size())});
    window.targets.resize(window.ids.size() - request.continuation.size(), -1);
    window.targets.insert(window.targets.end(), request.continuation.begin(), request.continuation.end());
  }
  window.weight = static_cast<double>(window.scored());
  return window;
}

ItemAnswer item_answer(const EvalWindow& window, std::span<const TokenScore> rows) {
  ItemAnswer answer;
  for (const RowRange& branch : window.branches) {
    double sum = 0;
    bool greedy = true;
    for (auto row = static_cast<std::size_t>(branch.begin); row < static_cast<std::size_t>(branch.end);
         ++row) {
      if (window.targets[row] < 0) continue;
      sum -= rows[row].nll;
      greedy = greedy && rows[row].greedy;
    }
    answer.loglikelihood.push_back(sum);
    answer.greedy.push_back(greedy ? 1 : 0);
  }
  return answer;
}

}  // namespace quantmap
