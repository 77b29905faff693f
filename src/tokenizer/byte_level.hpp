// GPT-2's printable spelling of bytes (encoder.py, bytes_to_unicode): each byte as one character, printable
// Latin-1 as itself, the other 68 as U+0100 upwards in order. Vocabularies and merges are written in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quantmap {

std::string byte_level_encode(std::string_view bytes);
// Nothing if a character is no spelling of a byte. `text` must be well-formed UTF-8.
std::optional<std::string> byte_level_decode(std::string_view text);

}  // namespace quantmap
