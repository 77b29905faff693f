// Recipe files (docs/recipes.md): JSON to rules and back to the canonical JSON that names them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "core/mapped_file.hpp"
#include "scheme/rules.hpp"

namespace quantmap {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(std::string_view place, std::string_view detail) { fail_usage(place, detail); }

// Throws on text that is not JSON, and on a key given twice in one object, which JSON readers drop silently.
json parse_json(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      refuse(fmt::format("key {}", quoted(parsed.get<std::string>())), "given twice");
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::parse_error& error) {
    refuse("not JSON", fmt::format("near byte {}", error.byte));
  }
}

void check_keys(const json& object, const std::string& place, std::initializer_list<std::string_view> known) {
  if (!object.is_object()) refuse(place, fmt::format("expected an object, found {}", object.type_name()));
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      refuse(place, fmt::format("unknown key {} (known: {})", quoted(key), fmt::join(known, ", ")));
}

// The array under `key`, empty if absent.
const json& list(const json& object, const char* key) {
  static const json kNone = json::array();
  const auto found = object.find(key);
  if (found == object.end()) return kNone;
  if (!found->is_array()) refuse(key, fmt::format("expected an array, found {}", found->type_name()));
  return *found;
}

std::string text_at(const json& value, const std::string& place) {
  if (!value.is_string()) refuse(place, fmt::format("expected a string, found {}", value.type_name()));
  return value.get<std::string>();
}

// Puts the place in the file before the error line of a part.
template <typename Parse>
auto at(const std::string& place, const Parse& parse) {
  try {
    return parse();
  } catch (const Error& error) {
    refuse(place, error.what());
  }
}

std::optional<QuantSpec> spec_at(const json& object, const char* key, const std::string& place, Role role) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  const std::string inner = fmt::format("{}.{}", place, key);
  const std::string text = text_at(*found, inner);
  return at(inner, [&] { return parse_quant_spec(text, role); });
}

LinearRule read_rule(const json& object, const std::string& place) {
  check_keys(object, place, {"modules", "w", "a"});
  if (!object.contains("modules")) refuse(place, "\"modules\" is missing");
  const std::string inner = place + ".modules";
  const std::string text = text_at(object["modules"], inner);
  LinearRule rule{at(inner, [&] { return ModulePattern(text); }), unquantized_linear()};
  at(inner, [&] {
    refuse_embeddings(rule.modules);
    return 0;
  });
  const auto weight = spec_at(object, "w", place, Role::weight);
  const auto activation = spec_at(object, "a", place, Role::activation);
  if (!weight && !activation) refuse(place, "neither \"w\" nor \"a\" is given");
  if (weight) rule.choice.weight = *weight;
  if (activation) rule.choice.activation = *activation;
  return rule;
}

// `*`, or numbers and ranges between commas: `0`, `0-3`, `0-3,30`.
std::vector<std::pair<std::int32_t, std::int32_t>> read_layers(std::string_view text,
                                                               const std::string& place) {
  std::vector<std::pair<std::int32_t, std::int32_t>> ranges;
  if (text == "*") return ranges;
  const auto number = [&](std::string_view digits) {
    std::int32_t value = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 0)
      refuse(place, fmt::format("{} is not a list of layers (written \"*\", \"3\", \"0-3\" or \"0-3,30\")",
                                quoted(text)));
    return value;
  };
  for (const std::string_view item : split_outside_regex(text, ",")) {
    const std::size_t dash = item.find('-');
    const std::int32_t first = number(item.substr(0, dash));
    const std::int32_t last = dash == std::string_view::npos ? first : number(item.substr(dash + 1));
    if (last < first) refuse(place, fmt::format("{} runs backwards", quoted(item)));
    ranges.emplace_back(first, last);
  }
  return ranges;
}

KvRule read_kv_rule(const json& object, const std::string& place) {
  check_keys(object, place, {"layers", "kv", "k", "v"});
  if (!object.contains("layers")) refuse(place, "\"layers\" is missing");
  const std::string inner = place + ".layers";
  KvRule rule{read_layers(text_at(object["layers"], inner), inner), unquantized_cache()};
  const auto both = spec_at(object, "kv", place, Role::kv);
  const auto key = spec_at(object, "k", place, Role::kv);
  const auto value = spec_at(object, "v", place, Role::kv);
  if (both && (key || value)) refuse(place, "\"kv\" says what \"k\" and \"v\" say again");
  if (!both && !key && !value) refuse(place, "none of \"kv\", \"k\", \"v\" is given");
  if (both) rule.choice = {*both, *both};
  if (key) rule.choice.key = *key;
  if (value) rule.choice.value = *value;
  return rule;
}

std::vector<ModulePattern> read_patterns(const json& recipe, const char* key) {
  std::vector<ModulePattern> patterns;
  for (std::size_t i = 0; i < list(recipe, key).size(); ++i) {
    const std::string place = fmt::format("{}[{}]", key, i);
    const std::string text = text_at(list(recipe, key)[i], place);
    patterns.push_back(at(place, [&] { return ModulePattern(text); }));
  }
  return patterns;
}

SchemeRules read_rules(std::string_view text) {
  const json recipe = parse_json(text);
  check_keys(recipe, "recipe", {"description", "rules", "kv", "include", "ignore"});
  if (!recipe.contains("rules") && !recipe.contains("kv"))
    refuse("recipe", "neither \"rules\" nor \"kv\" is given");
  if (recipe.contains("description")) text_at(recipe["description"], "description");
  SchemeRules rules;
  rules.recipe = true;
  const json& linears = list(recipe, "rules");
  for (std::size_t i = 0; i < linears.size(); ++i)
    rules.linears.push_back(read_rule(linears[i], fmt::format("rules[{}]", i)));
  const json& caches = list(recipe, "kv");
  for (std::size_t i = 0; i < caches.size(); ++i)
    rules.caches.push_back(read_kv_rule(caches[i], fmt::format("kv[{}]", i)));
  rules.include = read_patterns(recipe, "include");
  rules.ignore = read_patterns(recipe, "ignore");
  at("include", [&] {
    normalize_modules(rules.include, rules.ignore);
    return 0;
  });
  return rules;
}

std::string layers_text(const KvRule& rule) {
  if (rule.layers.empty()) return "*";
  std::vector<std::string> parts;
  for (const auto& [first, last] : rule.layers)
    parts.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
  return fmt::format("{}", fmt::join(parts, ","));
}

json texts(const std::vector<ModulePattern>& patterns) {
  json list = json::array();
  for (const ModulePattern& pattern : patterns) list.push_back(pattern.text());
  return list;
}

}  // namespace

SchemeRules read_recipe(const std::filesystem::path& path) {
  const MappedFile file(path);
  try {
    return read_rules(file.text());
  } catch (const Error& error) {
    fail_input("cannot use recipe", file.name(), error.what());
  }
}

std::string recipe_digest(const SchemeRules& rules) {
  json canonical = {{"rules", json::array()}, {"kv", json::array()}};
  for (const LinearRule& rule : rules.linears)
    canonical["rules"].push_back({{"modules", rule.modules.text()},
                                  {"w", spelling(rule.choice.weight, Role::weight)},
                                  {"a", spelling(rule.choice.activation, Role::activation)}});
  for (const KvRule& rule : rules.caches)
    canonical["kv"].push_back({{"layers", layers_text(rule)},
                               {"k", spelling(rule.choice.key, Role::kv)},
                               {"v", spelling(rule.choice.value, Role::kv)}});
  canonical["include"] = texts(rules.include);
  canonical["ignore"] = texts(rules.ignore);
  return fmt::format("@{}", sha256(canonical.dump()).substr(0, 16));  // keys sorted, no spaces
}

}  // namespace quantmap
