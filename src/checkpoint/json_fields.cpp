#include "checkpoint/json_fields.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/json.hpp"
#include "core/error.hpp"

namespace quantmap {

JsonFields::JsonFields(const nlohmann::json& object, const std::string& file, std::string prefix)
    : object_(object), file_(file), prefix_(std::move(prefix)) {}

bool JsonFields::has(const std::string& key) const {
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

bool JsonFields::mentions(const std::string& key) const { return object_.contains(key); }

const nlohmann::json& JsonFields::at(const std::string& key) const { return *object_.find(key); }

std::optional<std::int64_t> JsonFields::integer(const std::string& key, std::int64_t least,
                                                std::int64_t most) const {
  if (!has(key)) return std::nullopt;
  const nlohmann::json& value = at(key);
  const bool fits =
      value.is_number_integer() &&
      (!value.is_number_unsigned() ||
       value.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
    wrong(key, fmt::format("a whole number from {} to {}", least, most));
  return value.get<std::int64_t>();
}

std::int64_t JsonFields::required_integer(const std::string& key, std::int64_t least,
                                          std::int64_t most) const {
  const auto value = integer(key, least, most);
  if (!value) wrong(key, fmt::format("a whole number from {} to {}", least, most));
  return *value;
}

std::optional<double> JsonFields::number(const std::string& key, double above) const {
  if (!has(key)) return std::nullopt;
  const nlohmann::json& value = at(key);
  const bool any = above == std::numeric_limits<double>::lowest();
  if (!value.is_number() || !std::isfinite(value.get<double>()) || !(value.get<double>() > above))
    wrong(key, any ? "a number" : fmt::format("a number above {}", above));
  return value.get<double>();
}

std::optional<bool> JsonFields::boolean(const std::string& key) const {
  if (!has(key)) return std::nullopt;
  if (!at(key).is_boolean()) wrong(key, "true or false");
  return at(key).get<bool>();
}

std::optional<std::string> JsonFields::string(const std::string& key) const {
  if (!has(key)) return std::nullopt;
  if (!at(key).is_string()) wrong(key, "a string");
  return at(key).get<std::string>();
}

void JsonFields::wrong(const std::string& key, std::string_view expected) const {
  wrong(key, expected, mentions(key) ? describe(at(key)) : "no such key");
}

void JsonFields::wrong(const std::string& key, std::string_view expected, std::string_view found) const {
  // Some keys are the file's own words.
  fail_input("bad config", file_,
             fmt::format("key {}{}", prefix_, is_plain_text(key) ? key : quantmap::quoted(key)), expected,
             found);
}

}  // namespace quantmap
