#include "tokenizer/normalizer.hpp"

#include <fmt/format.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

#include <vector>

#include "core/error.hpp"
#include "tokenizer/pattern_json.hpp"
#include "tokenizer/unicode.hpp"

namespace quantmap {
namespace {

Normalizer unicode_form(const icu::Normalizer2* (*instance)(UErrorCode&)) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* form = instance(status);
  if (U_FAILURE(status))
    fail("tokenizer", "", fmt::format("ICU has no normalization data: {}", u_errorName(status)));
  return [form](const std::string& text) {
    UErrorCode error = U_ZERO_ERROR;
    std::string out;
    icu::StringByteSink<std::string> sink(&out, static_cast<std::int32_t>(text.size()));
    form->normalizeUTF8(0, text, sink, nullptr, error);
    if (U_FAILURE(error)) fail("tokenizer", "", fmt::format("normalization: {}", u_errorName(error)));
    return out;
  };
}

std::string lowercase(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const char32_t character = next_character(text, i);
    // Character by character, as the reference does: no final-sigma rule. U+0130 is the only one whose
    // unconditional mapping is longer (SpecialCasing.txt).
    if (character == 0x130)
      out += "i\u0307";
    else
      append_character(out, static_cast<char32_t>(u_tolower(static_cast<UChar32>(character))));
  }
  return out;
}

std::string without_marks(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    if (!is_mark(next_character(text, i))) out.append(text, begin, i - begin);
  }
  return out;
}

std::string stripped(const std::string& text, bool left, bool right) {
  std::size_t begin = 0, end = text.size();
  for (std::size_t next = 0; left && begin < end; begin = next)
    if (!is_white_space(next_character(text, next))) break;
  for (std::size_t next = end; right && begin < end; end = next)
    if (!is_white_space(previous_character(text, next))) break;
  return text.substr(begin, end - begin);
}

Normalizer replace(const TextPattern& pattern, const std::string& content) {
  return [pattern, content](const std::string& text) {
    std::string out;
    for (const TextRange& range : pattern.find(text)) {
      if (range.match)
        out += content;
      else
        out.append(text, range.begin, range.end - range.begin);
    }
    return out;
  };
}

Normalizer sequence(const JsonPlace& list) {
  std::vector<Normalizer> steps;
  for (std::size_t i = 0; i < list.size(); ++i) steps.push_back(parse_normalizer(list.at(i)));
  return [steps](const std::string& text) {
    std::string out = text;
    for (const Normalizer& step : steps) out = step(out);
    return out;
  };
}

}  // namespace

Normalizer parse_normalizer(const JsonPlace& json) {
  if (json.value().is_null()) return [](const std::string& text) { return text; };
  const std::string type = json.string("type");
  if (type == "Sequence") return sequence(json.at("normalizers"));
  if (type == "NFC") return unicode_form(&icu::Normalizer2::getNFCInstance);
  if (type == "NFD") return unicode_form(&icu::Normalizer2::getNFDInstance);
  if (type == "NFKC") return unicode_form(&icu::Normalizer2::getNFKCInstance);
  if (type == "NFKD") return unicode_form(&icu::Normalizer2::getNFKDInstance);
  if (type == "Lowercase") return lowercase;
  if (type == "StripAccents") return without_marks;
  if (type == "Strip") {
    const bool left = json.boolean("strip_left"), right = json.boolean("strip_right");
    return [left, right](const std::string& text) { return stripped(text, left, right); };
  }
  if (type == "Replace") return replace(parse_pattern(json.at("pattern")), json.string("content"));
  if (type == "Prepend") {
    const std::string prefix = json.string("prepend");
    return [prefix](const std::string& text) { return text.empty() ? text : prefix + text; };
  }
  json.refuse(fmt::format("normalizer {}", quoted(type)));
}

}  // namespace quantmap
