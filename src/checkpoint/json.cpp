#include "checkpoint/json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "core/error.hpp"

namespace quantmap {
namespace {

constexpr int kMaxDepth = 64;

}  // namespace

nlohmann::json parse_json(std::string_view text, std::string_view what, const std::string& file) {
  using nlohmann::json;
  // The lexer takes a NUL for the end of the text and would not look at what follows.
  if (const std::size_t at = text.find('\0'); at != text.npos)
    fail_input(what, file, fmt::format("not JSON at byte {}", at), "text", "a NUL byte");
  std::vector<std::unordered_set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
        keys.emplace_back();
        [[fallthrough]];
      case json::parse_event_t::array_start:
        if (depth >= kMaxDepth)
          fail_input(what, file, "nested too deeply", fmt::format("at most {} levels", kMaxDepth), "more");
        break;
      case json::parse_event_t::object_end:
        keys.pop_back();
        break;
      case json::parse_event_t::key:
        if (const auto& key = parsed.get_ref<const std::string&>(); !keys.back().insert(key).second)
          fail_input(what, file, fmt::format("key {} occurs twice in one object", quantmap::quoted(key)));
        break;
      default:
        break;
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), check);
  } catch (const json::parse_error& error) {
    fail_input(what, file, fmt::format("not JSON at byte {}", error.byte));
  } catch (const json::exception&) {  // a number out of range
    fail_input(what, file, "not JSON: a number out of range");
  }
}

std::string describe(const nlohmann::json& value) {
  using Type = nlohmann::json::value_t;
  switch (value.type()) {
    case Type::null:
      return "null";
    case Type::boolean:
      return value.get<bool>() ? "true" : "false";
    case Type::string:
      return fmt::format("a string {}", quantmap::quoted(value.get_ref<const std::string&>()));
    case Type::array:
      return fmt::format("an array of {}", value.size());
    case Type::object:
      return "an object";
    default:
      return value.dump();  // a number
  }
}

}  // namespace quantmap
