#include "evals/task_tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "tokenizer/unicode.hpp"

namespace quantmap {
namespace {

using Ids = std::vector<std::int32_t>;

// Where the white space at a text's end begins.
std::size_t end_of_text(std::string_view text) {
  std::size_t end = text.size();
  for (std::size_t next = end; end > 0 && is_white_space(previous_character(text, next));) end = next;
  return end;
}

std::int64_t count_characters(std::string_view text) {
  std::int64_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) next_character(text, at);
  return count;
}

class Encoder {
 public:
  Encoder(const Tokenizer& tokenizer, BosRule rule) : tokenizer_(tokenizer) {
    if (rule == BosRule::always && !tokenizer.bos())
      fail_usage("--bos always", "the tokenizer has no BOS token");
    if (rule == BosRule::always || (rule == BosRule::automatic && tokenizer.add_bos()))
      before_ = tokenizer.bos();
    for_empty_ = tokenizer.bos() ? tokenizer.bos() : tokenizer.eos();
  }

  // Continuation may come out empty.
  TaskRequest encode(const TaskPrompt& prompt) {
    const std::size_t end = end_of_text(prompt.context);
    const std::string_view context = std::string_view(prompt.context).substr(0, end);
    if (!last_ || *last_ != context) {
      last_ = std::string(context);
      last_ids_ = tokenizer_.encode(context);
    }
    const Ids whole = tokenizer_.encode(prompt.context + prompt.continuation);
    TaskRequest request;
    if (last_ids_.empty()) {
      if (!for_empty_) fail_input("", "", "the context is empty, and the tokenizer has neither BOS nor EOS");
      request.context = {*for_empty_};
    } else {
      if (before_) request.context = {*before_};
      request.context.insert(request.context.end(), last_ids_.begin(), last_ids_.end());
    }
    if (whole.size() > last_ids_.size())
      request.continuation.assign(whole.begin() + static_cast<std::ptrdiff_t>(last_ids_.size()), whole.end());
    request.characters = count_characters(prompt.choice);
    request.bytes = static_cast<std::int64_t>(prompt.choice.size());
    return request;
  }

 private:
  const Tokenizer& tokenizer_;
  std::optional<std::int32_t> before_, for_empty_;
  std::optional<std::string> last_;  // choices of an item share their context
  Ids last_ids_;
};

void cut_left(TaskRequest& request, std::int64_t limit) {
  const auto continuation = static_cast<std::int64_t>(request.continuation.size());
  if (continuation == 0) fail_input("", "", "the continuation has no tokens");
  if (continuation > limit)
    fail_input("", "", "the continuation is longer than the model's limit",
               fmt::format("at most {} tokens", limit), fmt::format("{}", continuation));
  const std::int64_t seen = static_cast<std::int64_t>(request.context.size()) + continuation - 1;
  request.cut_tokens = std::max<std::int64_t>(seen - limit, 0);
  request.context.erase(request.context.begin(), request.context.begin() + request.cut_tokens);
}

}  // namespace

std::vector<TaskItem> task_tokens(const Task& task, const TaskData& data,
                                  const std::vector<ItemPrompts>& prompts, const Tokenizer& tokenizer,
                                  std::int64_t limit, BosRule bos) {
  Encoder encoder(tokenizer, bos);
  std::vector<TaskItem> items;
  items.reserve(prompts.size());
  for (const ItemPrompts& item : prompts) {
    TaskItem& out = items.emplace_back();
    out.index = item.index;
    out.gold = item.gold;
    for (std::size_t i = 0; i < item.prompts.size(); ++i) try {
        out.requests.push_back(encoder.encode(item.prompts[i]));
        cut_left(out.requests.back(), limit);
      } catch (const Error& error) {
        fail_input(fmt::format("task {}", task.name), data.path,
                   fmt::format("{}: choice {}: {}", item.place, i, error.what()));
      }
  }
  return items;
}

std::string fingerprint_of(const std::vector<TaskItem>& items) {
  Fingerprint sum;
  const auto number = [&](std::int64_t value) { sum.add(&value, sizeof value); };
  const auto ids = [&](const Ids& list) {
    number(static_cast<std::int64_t>(list.size()));
    sum.add(list.data(), list.size() * sizeof(std::int32_t));
  };
  number(static_cast<std::int64_t>(items.size()));
  for (const TaskItem& item : items) {
    number(item.index);
    ids(item.gold);
    number(static_cast<std::int64_t>(item.requests.size()));
    for (const TaskRequest& request : item.requests) {
      ids(request.context);
      ids(request.continuation);
      number(request.characters);
      number(request.bytes);
    }
  }
  return sum.hex();
}

}  // namespace quantmap
