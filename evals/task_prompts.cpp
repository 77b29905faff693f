#include "evals/task_prompts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/error.hpp"

namespace quantmap {
namespace {

using nlohmann::json;

// What a record's templates give, before shots and delimiter.
struct Rendered {
  std::vector<std::string> contexts;  // one, or one for each choice
  std::vector<std::string> choices;   // one, or one for each context
  std::vector<std::int32_t> gold;
  std::size_t count() const { return std::max(contexts.size(), choices.size()); }
};

std::int32_t whole_number(const std::string& text) {
  std::int32_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail_input("", "", "gold", "an index", quoted(text));
  return value;
}

std::vector<std::int32_t> gold_of(const TaskForm& form, const json& record) {
  const std::string gold = form.gold.render(record);
  if (!form.among) return {whole_number(gold)};
  const std::vector<std::string> among = form.among->render(record);
  std::vector<std::int32_t> found;
  for (std::size_t i = 0; i < among.size(); ++i)
    if (among[i] == gold) found.push_back(static_cast<std::int32_t>(i));
  if (found.empty())
    fail_input("", "", "gold", fmt::format("one of the {} it is looked for among", among.size()),
               quoted(gold));
  return found;
}

Rendered render(const Task& task, const TaskForm& form, const json& record) {
  Rendered out;
  if (form.contexts)
    out.contexts = form.contexts->render(record);
  else
    out.contexts = {form.context.render(record)};
  out.choices = form.choices.render(record);
  const std::size_t least = task.kind == TaskKind::multiple_choice ? 2 : 1;
  if (const std::size_t found = form.contexts ? out.contexts.size() : out.choices.size(); found < least)
    fail_input("", "", form.contexts ? "contexts" : "choices", fmt::format("at least {}", least),
               fmt::format("{}", found));
  for (std::size_t i = 0; i < out.choices.size(); ++i)
    if (out.choices[i].empty()) fail_input("", "", fmt::format("choice {} is empty", i));
  out.gold = gold_of(form, record);
  if (task.kind != TaskKind::multiple_true && out.gold.size() != 1)
    fail_input("", "", "gold", "one right choice", fmt::format("{}", out.gold.size()));
  for (const std::int32_t index : out.gold)
    if (index < 0 || static_cast<std::size_t>(index) >= out.count())
      fail_input("", "", "gold", fmt::format("an index from 0 to {}", out.count() - 1),
                 fmt::format("{}", index));
  return out;
}

class Prompter {
  template <typename Do>
  auto at(const std::string& path, const TaskRecord& record, const Do& what) const {
    try {
      return what();
    } catch (const Error& error) {
      fail_input(fmt::format("task {}", task_.name), path, fmt::format("{}: {}", record.place, error.what()));
    }
  }

 public:
  Prompter(const Task& task, const TaskData& data) : task_(task), data_(data) {}

  ItemPrompts item(std::int64_t index) const {
    const TaskRecord& record = data_.records[static_cast<std::size_t>(index)];
    return at(data_.path, record, [&] {
      const Rendered rendered = render(task_, data_.form, record.value);
      const std::string before = data_.form.description.render(record.value) + examples(record.value);
      ItemPrompts item{index, record.place, {}, rendered.gold};
      for (std::size_t i = 0; i < rendered.count(); ++i) {
        const std::string& choice = rendered.choices[rendered.choices.size() == 1 ? 0 : i];
        item.prompts.push_back({before + rendered.contexts[rendered.contexts.size() == 1 ? 0 : i],
                                task_.delimiter + choice, choice});
      }
      return item;
    });
  }

 private:
  std::string value_at(const json& record, const std::string& path) const {
    return TextTemplate(fmt::format("{{{}}}", path)).render(record);
  }

  // The solved examples that come before an item, each with the separator behind it.
  std::string examples(const json& item) const {
    std::string text;
    std::int64_t count = 0;
    for (const TaskRecord& shot : data_.shots) {
      if (count == task_.shots) break;
      if (shot.value == item) continue;
      if (!task_.shots_same.empty() &&
          value_at(shot.value, task_.shots_same) != value_at(item, task_.shots_same))
        continue;
      text += at(data_.shots_path, shot, [&] { return solved(shot.value); }) + task_.shot_separator;
      ++count;
    }
    if (count < task_.shots)
      fail_input("", "", fmt::format("examples in {}", data_.shots_path), fmt::format("{}", task_.shots),
                 fmt::format("{}", count));
    return text;
  }

  std::string solved(const json& record) const {
    const Rendered rendered = render(task_, data_.form, record);
    const auto gold = static_cast<std::size_t>(rendered.gold.front());
    return rendered.contexts[rendered.contexts.size() == 1 ? 0 : gold] + task_.delimiter +
           rendered.choices[rendered.choices.size() == 1 ? 0 : gold];
  }

  const Task& task_;
  const TaskData& data_;
};

}  // namespace

ItemRange parse_item_range(std::string_view text) {
  const auto number = [&](std::string_view digits) {
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 0)
      fail_usage("--items",
                 fmt::format("{} is no range of items (written 0-199, zero-based, both ends included)",
                             quoted(text)));
    return value;
  };
  const std::size_t dash = text.find('-');
  const std::int64_t first = number(text.substr(0, dash));
  const std::int64_t last = dash == text.npos ? first : number(text.substr(dash + 1));
  if (last < first) fail_usage("--items", fmt::format("{} runs backwards", quoted(text)));
  return {first, last};
}

std::vector<ItemPrompts> task_prompts(const Task& task, const TaskData& data, ItemRange range) {
  const auto count = static_cast<std::int64_t>(data.records.size());
  if (range.first >= count)
    fail_input(fmt::format("task {}", task.name), data.path, fmt::format("items from {} on", range.first),
               fmt::format("items from 0 to {}", count - 1), "none there");
  const Prompter prompter(task, data);
  std::vector<ItemPrompts> items;
  for (std::int64_t index = range.first; index < count && index <= range.last; ++index)
    items.push_back(prompter.item(index));
  return items;
}

}  // namespace quantmap
