#include "evals/task_template.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "checkpoint/json.hpp"
#include "core/error.hpp"
#include "evals/task_filters.hpp"

namespace quantmap {
namespace {

using nlohmann::json;

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(separator, at);
    parts.emplace_back(text.substr(at, end == text.npos ? end : end - at));
    if (end == text.npos) return parts;
    at = end + 1;
  }
}

// `` (the value itself) has no parts.
std::vector<std::string> parse_path(std::string_view path) {
  if (path.empty()) return {};
  std::vector<std::string> parts = split(path, '.');
  for (const std::string& part : parts)
    if (part.empty()) fail_input("", "", fmt::format("path {} has an empty part", quoted(path)));
  return parts;
}

std::string spelled(const std::vector<std::string>& path) {
  std::string text;
  for (const std::string& part : path) text += fmt::format("{}{}", text.empty() ? "" : ".", part);
  return text;
}

const json* find_path(const json& record, const std::vector<std::string>& path) {
  const json* value = &record;
  for (const std::string& part : path) {
    if (value->is_object()) {
      const auto found = value->find(part);
      if (found == value->end()) return nullptr;
      value = &*found;
    } else if (value->is_array()) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
      if (error != std::errc() || end != part.data() + part.size() || index >= value->size()) return nullptr;
      value = &(*value)[index];
    } else {
      return nullptr;
    }
  }
  return value;
}

const json& at_path(const json& record, const std::vector<std::string>& path) {
  const json* found = find_path(record, path);
  if (found == nullptr || found->is_null())
    fail_input("", "", fmt::format("no field {}", quoted(spelled(path))));
  return *found;
}

std::string text_of(const json& value, const std::vector<std::string>& path) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer() || value.is_boolean()) return value.dump();
  fail_input("", "", path.empty() ? "value" : fmt::format("field {}", quoted(spelled(path))),
             "a string, a whole number or a boolean", describe(value));
}

TextFilter find_filter(std::string_view name) {
  for (const NamedFilter& filter : task_filters())
    if (filter.name == name) return filter.apply;
  std::string known;
  for (const NamedFilter& filter : task_filters())
    known += fmt::format("{}{}", known.empty() ? "" : ", ", filter.name);
  fail_input("", "", fmt::format("unknown filter {} (known: {})", quoted(name), known));
}

void check_keys(const json& object, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail_input("", "", fmt::format("unknown key {} (known: {})", quoted(key), fmt::join(known, ", ")));
}

}  // namespace

TextTemplate::TextTemplate(std::string_view text) {
  parts_.emplace_back();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '{' && c != '}') {
      parts_.back().literal += c;
    } else if (i + 1 < text.size() && text[i + 1] == c) {
      parts_.back().literal += c;
      ++i;
    } else {
      const std::size_t close = c == '{' ? text.find('}', i) : text.npos;
      if (close == text.npos)
        fail_input("", "",
                   fmt::format("{} in {} stands alone (literal braces are doubled)",
                               quoted(std::string(1, c)), quoted(text)));
      std::vector<std::string> names = split(text.substr(i + 1, close - i - 1), '|');
      Part& part = parts_.back();
      part.value = true;
      part.path = parse_path(names[0]);
      for (std::size_t n = 1; n < names.size(); ++n) part.filters.push_back(find_filter(names[n]));
      parts_.emplace_back();
      i = close;
    }
  }
}

TextTemplate TextTemplate::from_json(const json& value) {
  if (value.is_string()) return TextTemplate(value.get_ref<const std::string&>());
  if (!value.is_object() || !value.contains("text") || !value["text"].is_string())
    fail_input("", "", "not a template", "a string, or {\"text\": TEMPLATE, \"filter\": NAME}",
               describe(value));
  check_keys(value, {"text", "filter"});
  TextTemplate whole(value["text"].get_ref<const std::string&>());
  if (value.contains("filter")) {
    if (!value["filter"].is_string())
      fail_input("", "", "filter", "a filter's name", describe(value["filter"]));
    whole.filter_ = find_filter(value["filter"].get_ref<const std::string&>());
  }
  return whole;
}

std::string TextTemplate::render(const json& record) const {
  std::string out;
  for (const Part& part : parts_) {
    out += part.literal;
    if (!part.value) continue;
    std::string text = text_of(at_path(record, part.path), part.path);
    for (const TextFilter filter : part.filters) text = filter(text);
    out += text;
  }
  return filter_ != nullptr ? filter_(out) : out;
}

ListTemplate::ListTemplate(const json& list) {
  if (list.is_array()) {
    if (list.empty()) fail_input("", "", "no templates", "at least one", "an empty array");
    for (const json& text : list) texts_.push_back(TextTemplate::from_json(text));
    return;
  }
  if (!list.is_object() || !list.contains("each"))
    fail_input("", "", "not a list", "an array of templates, or {\"each\": PATH, \"text\": TEMPLATE}",
               describe(list));
  check_keys(list, {"each", "text"});
  if (!list["each"].is_string()) fail_input("", "", "each", "a path (a string)", describe(list["each"]));
  each_ = parse_path(list["each"].get_ref<const std::string&>());
  texts_.push_back(list.contains("text") ? TextTemplate::from_json(list["text"]) : TextTemplate("{}"));
}

std::vector<std::string> ListTemplate::render(const json& record) const {
  std::vector<std::string> out;
  if (!each_) {
    for (const TextTemplate& text : texts_) out.push_back(text.render(record));
    return out;
  }
  const json& array = at_path(record, *each_);
  if (!array.is_array())
    fail_input("", "", fmt::format("field {}", quoted(spelled(*each_))), "an array", describe(array));
  for (const json& element : array) out.push_back(texts_.front().render(element));
  return out;
}

bool has_path(const json& record, std::string_view path) {
  const json* found = find_path(record, parse_path(path));
  return found != nullptr && !found->is_null();
}

}  // namespace quantmap
