#include "evals/task_filters.hpp"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <array>

#include "core/error.hpp"
#include "tokenizer/unicode.hpp"

namespace quantmap {
namespace {

// Without white space at both ends; White_Space is what Python's str.strip removes, but for U+001C to U+001F.
bool strippable(char32_t character) {
  return is_white_space(character) || (character >= 0x1C && character <= 0x1F);
}

std::string strip(const std::string& text) {
  std::size_t begin = 0, end = text.size();
  for (std::size_t next = 0; begin < end && strippable(next_character(text, next));) begin = next;
  for (std::size_t next = end; end > begin && strippable(previous_character(text, next));) end = next;
  return text.substr(begin, end - begin);
}

// The first character in title case, the others in lower case, as Python's str.capitalize does.
std::string capitalize(const std::string& text) {
  if (text.empty()) return text;
  std::size_t rest = 0;
  const char32_t first = next_character(text, rest);
  std::string out;
  append_character(out, static_cast<char32_t>(u_totitle(static_cast<UChar32>(first))));
  icu::UnicodeString lower = icu::UnicodeString::fromUTF8(text.substr(rest));
  lower.toLower(icu::Locale::getRoot());
  lower.toUTF8String(out);
  return out;
}

std::string replace_all(const std::string& text, std::string_view what, std::string_view by) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t found = text.find(what); found != text.npos; found = text.find(what, at)) {
    out += text.substr(at, found - at);
    out += by;
    at = found + what.size();
  }
  return out + text.substr(at);
}

// From a `[` to the nearest `]` on the same line; one that does not close stays.
std::string without_brackets(const std::string& text) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t open = text.find('['); open != text.npos; open = text.find('[', open)) {
    const std::size_t close = text.find_first_of("]\n", open);
    if (close == text.npos) break;
    if (text[close] == '\n') {
      open = close;
      continue;
    }
    out += text.substr(at, open - at);
    at = open = close + 1;
  }
  return out + text.substr(at);
}

// HellaSwag's WikiHow part has marks of its origin: ` [title]` ends a sentence, other brackets go, and so
// does the second of two spaces (lm-evaluation-harness, tasks/hellaswag).
std::string hellaswag(const std::string& text) {
  return replace_all(without_brackets(replace_all(strip(text), " [title]", ". ")), "  ", " ");
}

std::size_t blank(const std::string& text) {
  const std::size_t at = text.find('_');
  if (at == text.npos) fail_input("", "", "no blank", "a text with _", quoted(text));
  return at;
}
std::string before_blank(const std::string& text) { return text.substr(0, blank(text)); }
std::string after_blank(const std::string& text) { return text.substr(blank(text) + 1); }

// Words are what lies between spaces (U+0020 alone), as LAMBADA counts them.
std::string without_last_word(const std::string& text) {
  const std::size_t at = text.rfind(' ');
  return at == text.npos ? "" : text.substr(0, at);
}
std::string last_word(const std::string& text) {
  const std::size_t at = text.rfind(' ');
  return at == text.npos ? text : text.substr(at + 1);
}

std::string underscores_to_spaces(const std::string& text) { return replace_all(text, "_", " "); }

constexpr std::array<NamedFilter, 8> kFilters{{{"strip", strip},
                                               {"capitalize", capitalize},
                                               {"hellaswag", hellaswag},
                                               {"before_blank", before_blank},
                                               {"after_blank", after_blank},
                                               {"without_last_word", without_last_word},
                                               {"last_word", last_word},
                                               {"underscores_to_spaces", underscores_to_spaces}}};

}  // namespace

std::span<const NamedFilter> task_filters() { return kFilters; }

}  // namespace quantmap
