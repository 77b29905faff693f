// UTF-8 and character classes, by ICU. The classes are those that the reference libraries use: White_Space,
// Word as UTS 18 defines it, and general categories.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quantmap {

// Throws Error (input) with the offset of the first byte that is not part of well-formed UTF-8, and for a
// text too long for the libraries below (2 GiB).
void require_utf8(std::string_view text, std::string_view file = "");

// The character at `offset`, which moves behind it. `text` must be well-formed.
char32_t next_character(std::string_view text, std::size_t& offset);
// The character that ends at `offset`, which moves to its start. `text` must be well-formed, offset > 0.
char32_t previous_character(std::string_view text, std::size_t& offset);
void append_character(std::string& text, char32_t character);

bool is_white_space(char32_t character);
bool is_word(char32_t character);         // Alphabetic, mark, decimal digit, connector or join control
bool is_number(char32_t character);       // Nd, Nl, No
bool is_mark(char32_t character);         // Mn, Mc, Me
bool is_punctuation(char32_t character);  // general category P, or ASCII punctuation

}  // namespace quantmap
