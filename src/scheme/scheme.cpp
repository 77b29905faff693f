#include "scheme/scheme.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "scheme/pattern.hpp"
#include "scheme/rules.hpp"

namespace quantmap {
namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f";

bool any_matches(const std::vector<ModulePattern>& patterns, std::string_view module) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const ModulePattern& pattern) { return pattern.matches(module); });
}

// `model.layers.N.…`, and not a mixture's router, which product.md leaves alone.
bool quantized_by_default(std::string_view module) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!module.starts_with(kLayers)) return false;
  module.remove_prefix(kLayers.size());
  const std::size_t digits = std::min(module.find_first_not_of("0123456789"), module.size());
  if (digits == 0 || digits + 1 >= module.size() || module[digits] != '.') return false;
  const std::string_view last = module.substr(module.rfind('.') + 1);
  return last != "gate" && last != "router" && last != "shared_expert_gate";
}

// The rule that a module falls under; null: left alone.
const LinearRule* rule_for(const SchemeRules& rules, std::string_view module) {
  const auto names_it = [&](const LinearRule& rule) {
    return rule.modules.is_name() && rule.modules.text() == module;
  };
  if (!quantized_by_default(module) && !any_matches(rules.include, module) &&
      std::none_of(rules.linears.begin(), rules.linears.end(), names_it))
    return nullptr;
  if (any_matches(rules.ignore, module)) return nullptr;
  for (const LinearRule& rule : rules.linears)
    if (rule.modules.matches(module)) return &rule;
  return nullptr;
}

bool covers(const KvRule& rule, int layer) {
  return rule.layers.empty() || std::any_of(rule.layers.begin(), rule.layers.end(), [&](const auto& range) {
           return range.first <= layer && layer <= range.second;
         });
}

// The one spelling that all have, or `mixed`.
std::string only(const std::set<std::string>& spellings) {
  return spellings.size() == 1 ? *spellings.begin() : "mixed";
}

std::string plain_spelling(const SchemeRules& rules) {
  const LinearChoice& linear = rules.linears.front().choice;
  const KvChoice& cache = rules.caches.front().choice;
  const std::string kv = spelling(cache);
  std::string text =
      fmt::format("w={},a={},{}{}", spelling(linear.weight, Role::weight),
                  spelling(linear.activation, Role::activation), kv.starts_with("k=") ? "" : "kv=", kv);
  for (const ModulePattern& pattern : rules.include) text += ",include=" + pattern.text();
  for (const ModulePattern& pattern : rules.ignore) text += ",ignore=" + pattern.text();
  return text;
}

std::vector<std::string> split_at_space(std::string_view argument) {
  std::vector<std::string> parts;
  for (const std::string_view part : split_outside_regex(argument, kSpace))
    if (!part.empty()) parts.emplace_back(part);
  return parts;
}

}  // namespace

Scheme Scheme::parse(std::string_view text) {
  // A spelling is stored and printed as one line of UTF-8.
  if (!is_plain_text(text))
    fail_usage(fmt::format("scheme {}", quoted(text)), "control characters or invalid UTF-8");
  Scheme scheme;
  scheme.given_ = text;
  if (text.starts_with('@')) {
    if (text.size() == 1) fail_usage("scheme \"@\"", "the name of the recipe file is missing");
    auto rules = std::make_shared<SchemeRules>(read_recipe(std::string(text.substr(1))));
    scheme.spelling_ = recipe_digest(*rules);
    scheme.rules_ = std::move(rules);
  } else {
    auto rules = std::make_shared<SchemeRules>(parse_plain_rules(text));
    scheme.spelling_ = plain_spelling(*rules);
    scheme.rules_ = std::move(rules);
  }
  return scheme;
}

std::string Scheme::weights() const {
  std::set<std::string> spellings;
  for (const LinearRule& rule : rules_->linears)
    spellings.insert(quantmap::spelling(rule.choice.weight, Role::weight));
  if (!rules_->has_rule_for_all_modules())
    spellings.insert(quantmap::spelling(unquantized_linear().weight, Role::weight));
  return only(spellings);
}

std::string Scheme::activations() const {
  std::set<std::string> spellings;
  for (const LinearRule& rule : rules_->linears)
    spellings.insert(quantmap::spelling(rule.choice.activation, Role::activation));
  if (!rules_->has_rule_for_all_modules())
    spellings.insert(quantmap::spelling(unquantized_linear().activation, Role::activation));
  return only(spellings);
}

std::string Scheme::kv() const {
  std::set<std::string> spellings;
  for (const KvRule& rule : rules_->caches) spellings.insert(quantmap::spelling(rule.choice));
  if (!rules_->has_rule_for_all_layers()) spellings.insert(quantmap::spelling(unquantized_cache()));
  return only(spellings);
}

LinearChoice Scheme::linear(std::string_view module) const {
  const LinearRule* rule = rule_for(*rules_, module);
  return rule ? rule->choice : unquantized_linear();
}

KvChoice Scheme::cache(int layer) const {
  for (const KvRule& rule : rules_->caches)
    if (covers(rule, layer)) return rule.choice;
  return unquantized_cache();
}

bool Scheme::is_reference() const {
  const LinearChoice& linear =
      rules_->linears.empty() ? unquantized_linear() : rules_->linears.front().choice;
  const KvChoice& cache = rules_->caches.empty() ? unquantized_cache() : rules_->caches.front().choice;
  return !rules_->recipe && linear.weight.is_reference() && linear.activation.is_reference() &&
         cache.key.is_reference() && cache.value.is_reference();
}

std::vector<std::string> Scheme::unused_patterns(const std::vector<std::string>& modules) const {
  std::vector<std::string> unused;
  const auto none = [&](const auto& uses) { return std::none_of(modules.begin(), modules.end(), uses); };
  for (const LinearRule& rule : rules_->linears)
    if (none([&](const std::string& module) { return rule_for(*rules_, module) == &rule; }))
      unused.push_back(rule.modules.text());
  for (const ModulePattern& pattern : rules_->include)
    if (none([&](const std::string& module) { return pattern.matches(module); }))
      unused.push_back("include=" + pattern.text());
  for (const ModulePattern& pattern : rules_->ignore)
    if (none([&](const std::string& module) { return pattern.matches(module); }))
      unused.push_back("ignore=" + pattern.text());
  return unused;
}

std::vector<Scheme> parse_every_scheme(const std::vector<std::string>& arguments) {
  std::vector<Scheme> schemes;
  for (const std::string& argument : arguments)
    for (const std::string& text : split_at_space(argument)) {
      Scheme scheme = Scheme::parse(text);
      if (std::find(schemes.begin(), schemes.end(), scheme) == schemes.end())
        schemes.push_back(std::move(scheme));
    }
  return schemes;
}

std::vector<Scheme> parse_schemes(const std::vector<std::string>& arguments) {
  std::vector<Scheme> schemes = parse_every_scheme(arguments);
  std::erase_if(schemes, [](const Scheme& scheme) { return scheme.is_reference(); });
  return schemes;
}

}  // namespace quantmap
