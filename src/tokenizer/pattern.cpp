#include "tokenizer/pattern.hpp"

#include <algorithm>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include "core/error.hpp"
#include "tokenizer/unicode.hpp"

namespace quantmap {
namespace {

// A match may take this many steps, plus some for each byte: `\s*[\r\n]` on a run of spaces backtracks once a
// space, a nested quantifier exponentially.
constexpr std::size_t kSteps = 10'000'000, kStepsPerByte = 16;
constexpr std::size_t kJitStack = std::size_t{256} << 20;  // address space; pages are taken as they are used

// What a match needs beside the compiled pattern; one a thread, because find() is const and may run anywhere.
struct Matcher {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(std::size_t{64} << 10, kJitStack, nullptr);
  Matcher() {
    if (!data || !context) fail("tokenizer", "", "no memory for matching patterns");
    if (stack) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Matcher() {
    if (stack) pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;
};

std::string message_of(int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

TextPattern::TextPattern(std::string_view pcre, unsigned options, std::string_view shown,
                         const std::string& file)
    : shown_(shown) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  if (context) pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pcre.data()), pcre.size(),
                                   options | PCRE2_UTF, &error, &offset, context.get());
  if (!code) fail_input("tokenizer", file, "pattern " + quoted(shown, 200) + ": " + message_of(error));
  code_ = std::shared_ptr<const void>(code, [](const void* compiled) {
    pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(compiled)));
  });
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where it fails, the interpreter matches the same
}

TextPattern TextPattern::regex(std::string_view oniguruma, const std::string& file) {
  // Ruby's ^ and $ are always at lines.
  return TextPattern(pcre_from_oniguruma(oniguruma, file),
                     PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, oniguruma, file);
}

TextPattern TextPattern::literal(std::string_view text, const std::string& file) {
  return TextPattern(text, PCRE2_LITERAL, text, file);
}

std::vector<TextRange> TextPattern::find(std::string_view text) const {
  thread_local Matcher matcher;
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  pcre2_set_match_limit(matcher.context, static_cast<std::uint32_t>(std::min(
                                             kSteps + kStepsPerByte * text.size(), std::size_t{UINT32_MAX})));
  std::vector<TextRange> ranges;
  std::size_t position = 0, covered = 0;
  bool any = false;
  while (!text.empty() && position <= text.size()) {
    int result =
        pcre2_match(code, subject, text.size(), position, PCRE2_NO_UTF_CHECK, matcher.data, matcher.context);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT)
      result = pcre2_match(code, subject, text.size(), position, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                           matcher.data, matcher.context);
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0)
      fail_input("tokenizer", "",
                 fmt::format("pattern {} fails at byte {} of a text: {}", quoted(shown_, 200), position,
                             message_of(result)));
    const PCRE2_SIZE* match = pcre2_get_ovector_pointer(matcher.data);
    const std::size_t begin = match[0], end = match[1];
    if (begin == end && any &&
        begin == covered) {  // an empty match directly behind the last one does not count
      if (position == text.size()) break;
      next_character(text, position);
      continue;
    }
    if (begin > covered) ranges.push_back({covered, begin, false});
    ranges.push_back({begin, end, true});
    position = covered = end;
    any = true;
  }
  if (covered < text.size()) ranges.push_back({covered, text.size(), false});
  return ranges;
}

}  // namespace quantmap
