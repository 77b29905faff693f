#include "scheme/pattern.hpp"

#include <fmt/format.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/error.hpp"

namespace quantmap {
namespace {

constexpr std::uint32_t kMatchLimit = 1'000'000;  // a module path takes a few hundred steps

std::string reason_of(int code) {
  PCRE2_UCHAR buffer[256];
  const int length = pcre2_get_error_message(code, buffer, sizeof buffer);
  return length > 0 ? std::string(reinterpret_cast<const char*>(buffer), static_cast<std::size_t>(length))
                    : fmt::format("PCRE2 error {}", code);
}

// Index of the slash that closes the regex opened at text[0], or npos.
std::size_t closing_slash(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '/') {
      return i;
    }
  }
  return std::string_view::npos;
}

std::shared_ptr<const void> compile(std::string_view text) {
  const std::string what = fmt::format("regex {}", quoted(text));
  if (!is_plain_text(text)) fail_usage(what, "control characters or invalid UTF-8");
  const std::size_t close = closing_slash(text);
  if (close == std::string_view::npos) fail_usage(what, "the closing / is missing");
  if (close + 1 != text.size())
    fail_usage(what, fmt::format("text after the closing /: {} (a slash inside is written \\/)",
                                 quoted(text.substr(close + 1))));
  const std::string_view pattern = text.substr(1, close - 1);
  if (pattern.empty()) fail_usage(what, "it is empty (every module is written *)");
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (!code) fail_usage(what, fmt::format("at position {} after the /: {}", offset, reason_of(error)));
  return std::shared_ptr<const void>(
      code, [](const void* held) { pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(held))); });
}

void check_name(std::string_view name) {
  const std::string what = fmt::format("module {}", quoted(name));
  if (name.empty()) fail_usage("module pattern", "it is empty");
  for (const char c : name) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '.' || c == '-';
    if (!fits)
      fail_usage(what, fmt::format("{} is in no module path (a pattern is written /REGEX/, every module *)",
                                   quoted(std::string_view(&c, 1))));
  }
}

}  // namespace

ModulePattern::ModulePattern(std::string_view text) : text_(text) {
  if (matches_all()) return;
  if (text.starts_with('/')) {
    regex_ = compile(text);
  } else {
    check_name(text);
  }
}

bool ModulePattern::matches(std::string_view module) const {
  if (matches_all()) return true;
  if (!regex_) return text_ == module;
  const auto* code = static_cast<const pcre2_code*>(regex_.get());
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create(1, nullptr), &pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> limits(
      pcre2_match_context_create(nullptr), &pcre2_match_context_free);
  if (!match || !limits) fail("regex", "", "out of memory");
  pcre2_set_match_limit(limits.get(), kMatchLimit);
  const int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(module.data()), module.size(), 0, 0,
                                match.get(), limits.get());
  if (found < 0 && found != PCRE2_ERROR_NOMATCH)
    fail_usage(fmt::format("regex {}", quoted(text_)),
               fmt::format("on module {}: {}", quoted(module), reason_of(found)));
  return found >= 0;
}

std::vector<std::string_view> split_outside_regex(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || separators.find(text[i]) != std::string_view::npos) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    } else if (text[i] == '/' && i > begin && text[i - 1] == '=' && text[begin] != '@') {
      const std::size_t close = closing_slash(text.substr(i));
      i = close == std::string_view::npos ? text.size() - 1 : i + close;
    }
  }
  return parts;
}

}  // namespace quantmap
