// The text of a task's prompts, made from a record: templates as a task file writes them (docs/tasks.md).
//   {question.stem}        the value at a path of the record: keys, or positions of an array, between points
//   {text|strip}           the value through a filter; several run from left to right
//   {} {{ }}               the value itself (an element of a list); literal braces
// Strings render as they are, whole numbers and booleans as JSON writes them; nothing else renders.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quantmap {

using TextFilter = std::string (*)(const std::string& text);

class TextTemplate {
 public:
  TextTemplate() = default;
  // Throws Error (input) with a detail alone (the caller knows file and place): a brace that does not close,
  // a path with an empty part, an unknown filter (the known are listed).
  explicit TextTemplate(std::string_view text);
  // A string, or {"text": TEMPLATE, "filter": NAME}: the whole text through a filter.
  static TextTemplate from_json(const nlohmann::json& value);
  // Throws Error (input), a detail alone: nothing at a path, or a value that is no text.
  std::string render(const nlohmann::json& record) const;

 private:
  struct Part {
    std::string literal;  // before the value
    bool value = false;   // whether there is one
    std::vector<std::string> path;
    std::vector<TextFilter> filters;
  };
  std::vector<Part> parts_;
  TextFilter filter_ = nullptr;
};

// Several texts: one template each, or one template for each element of an array of the record.
class ListTemplate {
 public:
  ListTemplate() = default;
  // `["{sol1}", "{sol2}"]`, or `{"each": "question.choices", "text": "{label}"}` (text: `{}` if left out).
  // Throws Error (input), a detail alone; an empty array is an error.
  explicit ListTemplate(const nlohmann::json& list);
  // May be empty where `each` names an empty array. Throws Error (input), a detail alone.
  std::vector<std::string> render(const nlohmann::json& record) const;

 private:
  std::vector<TextTemplate> texts_;
  std::optional<std::vector<std::string>> each_;
};

// Whether a record has a value at a path, null not counted.
bool has_path(const nlohmann::json& record, std::string_view path);

}  // namespace quantmap
