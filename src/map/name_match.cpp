#include "map/name_match.hpp"

#include <fmt/format.h>

#include <fnmatch.h>

#include <algorithm>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/error.hpp"

namespace quantmap {
namespace {

constexpr std::uint32_t kMatchLimit = 1'000'000;  // a module path takes a few hundred steps
constexpr std::string_view kRegexMark = "re:";

std::shared_ptr<const void> compile(const std::string& pattern, std::vector<std::string>& warnings) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_ANCHORED | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (!code) {
    PCRE2_UCHAR buffer[256];
    const int length = pcre2_get_error_message(error, buffer, sizeof buffer);
    warnings.push_back(
        fmt::format("the regular expression {} does not compile: {} at position {}; it matches nothing here",
                    quantmap::quoted(pattern),
                    length > 0 ? reinterpret_cast<const char*>(buffer) : "unknown error", offset));
    return nullptr;
  }
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is no JIT it is interpreted
  return std::shared_ptr<const void>(
      code, [](const void* held) { pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(held))); });
}

bool regex_matches(const void* code, std::string_view name) {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create(1, nullptr), &pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> limits(
      pcre2_match_context_create(nullptr), &pcre2_match_context_free);
  pcre2_set_match_limit(limits.get(), kMatchLimit);
  return pcre2_match(static_cast<const pcre2_code*>(code), reinterpret_cast<PCRE2_SPTR>(name.data()),
                     name.size(), 0, 0, match.get(), limits.get()) >= 0;
}

// A digit, a class or an escape other than of a punctuation mark may tell digits apart; so may a back
// reference, which is such an escape, and a counted repetition, which holds a digit.
bool may_tell_numbers_apart(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] >= '0' && text[i] <= '9') || text[i] == '[') return true;
    if (text[i] == '\\') {
      if (i + 1 == text.size() || std::string_view(".-_/*+?()").find(text[i + 1]) == std::string_view::npos)
        return true;
      ++i;
    }
  }
  return false;
}

}  // namespace

std::string_view rule_name(NameRule rule) {
  switch (rule) {
    case NameRule::names:
      return "name, class or re:regex";
    case NameRule::substring:
      return "substring";
    case NameRule::glob:
      return "glob";
  }
  return "";
}

NameMatcher::NameMatcher(NameRule rule, const std::vector<std::string>& patterns,
                         std::vector<std::string>& warnings)
    : rule_(rule) {
  for (const std::string& text : patterns) {
    Pattern pattern{text, nullptr, 0};
    if (rule == NameRule::names && text.starts_with(kRegexMark)) {
      pattern.text = text.substr(kRegexMark.size());
      pattern.regex = compile(pattern.text, warnings);
      if (!pattern.regex) continue;
    } else if (rule == NameRule::glob && text.find_first_of("*?[") != std::string::npos) {
      pattern.literal = text.find_first_of("*?[\\");
    } else if (rule != NameRule::substring) {
      exact_.insert(text);
      continue;
    }
    patterns_.push_back(std::move(pattern));
  }
  numbers_ = std::any_of(exact_.begin(), exact_.end(), may_tell_numbers_apart) ||
             std::any_of(patterns_.begin(), patterns_.end(),
                         [](const Pattern& pattern) { return may_tell_numbers_apart(pattern.text); });
}

bool NameMatcher::matches(std::string_view name, std::string_view class_name) const {
  if (!exact_.empty()) {
    if (exact_.contains(std::string(name))) return true;
    if (rule_ == NameRule::names && exact_.contains(std::string(class_name))) return true;
  }
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const Pattern& pattern) {
    if (pattern.regex) return regex_matches(pattern.regex.get(), name);
    if (rule_ == NameRule::substring) return name.find(pattern.text) != std::string_view::npos;
    if (name.substr(0, pattern.literal) != std::string_view(pattern.text).substr(0, pattern.literal))
      return false;
    return ::fnmatch(pattern.text.c_str(), std::string(name).c_str(), 0) == 0;
  });
}

}  // namespace quantmap
