#include "tokenizer/json_access.hpp"

#include <fmt/format.h>

#include <limits>

#include "checkpoint/json.hpp"
#include "core/error.hpp"

namespace quantmap {
bool JsonPlace::has(const char* key) const {
  if (!value_->is_object()) fail("an object");
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

JsonPlace JsonPlace::at(const char* key) const {
  if (!value_->is_object()) fail("an object");
  const auto found = value_->find(key);
  if (found == value_->end()) complain(fmt::format("no key {}", key));
  return {*found, place_.empty() ? key : fmt::format("{}.{}", place_, key), *file_};
}

JsonPlace JsonPlace::at(std::size_t index) const {
  if (index >= size()) fail(fmt::format("at least {} elements", index + 1));
  return {(*value_)[index], fmt::format("{}[{}]", place_, index), *file_};
}

std::size_t JsonPlace::size() const {
  if (!value_->is_array()) fail("an array");
  return value_->size();
}

std::string JsonPlace::as_string() const {
  if (!value_->is_string()) fail("a string");
  return value_->get<std::string>();
}

std::string JsonPlace::string(const char* key) const { return at(key).as_string(); }

std::string JsonPlace::string_or(const char* key, const std::string& fallback) const {
  return has(key) ? string(key) : fallback;
}

bool JsonPlace::boolean(const char* key) const {
  const JsonPlace found = at(key);
  if (!found.value_->is_boolean()) found.fail("true or false");
  return found.value_->get<bool>();
}

bool JsonPlace::boolean_or(const char* key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}

std::int32_t JsonPlace::as_id() const {
  if (!value_->is_number_integer()) fail("a token id");
  // A negative number, as unsigned, is out of range too.
  const auto number = value_->get<std::uint64_t>();
  if (number >= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
    fail("a token id in [0, 2^31-1)");
  return static_cast<std::int32_t>(number);
}

void JsonPlace::fail(std::string_view expected) const {
  fail_input("tokenizer", *file_, place_.empty() ? "top level" : place_, expected, describe(*value_));
}

void JsonPlace::refuse(std::string_view what) const { complain(fmt::format("{} is not supported", what)); }

void JsonPlace::complain(std::string_view what) const {
  fail_input("tokenizer", *file_, place_.empty() ? std::string(what) : fmt::format("{}: {}", place_, what));
}

}  // namespace quantmap
