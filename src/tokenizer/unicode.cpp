#include "tokenizer/unicode.hpp"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <cstdint>
#include <limits>

#include "core/error.hpp"

namespace quantmap {

void require_utf8(std::string_view text, std::string_view file) {
  if (text.size() > std::numeric_limits<std::int32_t>::max())
    fail_input("text", file, "too long for a tokenizer", "less than 2 GiB",
               fmt::format("{} bytes", text.size()));
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    UChar32 character = 0;
    U8_NEXT(text.data(), i, text.size(), character);
    if (character < 0)
      fail_input("text", file, fmt::format("not UTF-8 at byte {}", start), "UTF-8",
                 quoted(text.substr(start, 4)));
  }
}

char32_t next_character(std::string_view text, std::size_t& offset) {
  UChar32 character = 0;
  U8_NEXT_UNSAFE(text.data(), offset, character);
  return static_cast<char32_t>(character);
}

char32_t previous_character(std::string_view text, std::size_t& offset) {
  UChar32 character = 0;
  U8_PREV_UNSAFE(text.data(), offset, character);
  return static_cast<char32_t>(character);
}

void append_character(std::string& text, char32_t character) {
  char buffer[U8_MAX_LENGTH];
  std::size_t length = 0;
  U8_APPEND_UNSAFE(buffer, length, static_cast<UChar32>(character));
  text.append(buffer, length);
}

bool is_white_space(char32_t c) { return u_isUWhiteSpace(static_cast<UChar32>(c)); }

bool is_word(char32_t c) {
  const auto character = static_cast<UChar32>(c);
  return u_isUAlphabetic(character) ||
         (U_GET_GC_MASK(character) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) ||
         u_hasBinaryProperty(character, UCHAR_JOIN_CONTROL);
}

bool is_number(char32_t c) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_N_MASK) != 0; }

bool is_mark(char32_t c) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_M_MASK) != 0; }

bool is_punctuation(char32_t c) {
  // ASCII punctuation includes what Unicode calls symbols: $ + < = > ^ ` | ~
  if (c < 0x80) return c > 0x20 && c < 0x7F && !u_isalnum(static_cast<UChar32>(c));
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_P_MASK) != 0;
}

}  // namespace quantmap
