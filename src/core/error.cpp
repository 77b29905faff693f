#include "core/error.hpp"

#include <fmt/format.h>

namespace quantmap {
namespace {

// Length of the well-formed UTF-8 sequence at the start of `text`, 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80 ? 1 : lead >= 0xC2 && lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates, and beyond U+10FFFF.
  if (length == 3 && ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F))) return 0;
  if (length == 4 && ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F))) return 0;
  return length;
}

// Length of the printable character at the start of `text`, 0 if the first byte must be escaped. C1 controls
// are escaped too: terminals act on them; so are U+2028 and U+2029, which end lines.
std::size_t printable_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = utf8_length(text);
  if (length == 1 && (byte(0) < 0x20 || byte(0) == 0x7F)) return 0;
  if (length == 2 && byte(0) == 0xC2 && byte(1) < 0xA0) return 0;
  if (length == 3 && byte(0) == 0xE2 && byte(1) == 0x80 && (byte(2) == 0xA8 || byte(2) == 0xA9)) return 0;
  return length;
}

// The printable form of text[0, i) for the first i >= limit at which a character ends; sets `limit` to that
// i.
std::string printable(std::string_view text, std::size_t& limit) {
  std::string out;
  std::size_t i = 0;
  while (i < text.size() && i < limit) {
    const std::size_t length = printable_length(text.substr(i));
    if (length == 0) {
      out += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[i]));
      ++i;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  limit = i;
  return out;
}

std::string one_line(std::string_view text) {
  std::size_t limit = text.size();
  return printable(text, limit);
}

std::string join(std::string_view what, std::string_view file, std::string_view detail) {
  std::string line(what);
  for (std::string_view part : {file, detail}) {
    if (part.empty()) continue;
    if (!line.empty()) line += ": ";
    line += part;
  }
  return one_line(line);
}

}  // namespace

void fail_input(std::string_view what, std::string_view file, std::string_view detail) {
  throw Error(ErrorKind::input, join(what, file, detail));
}

void fail_input(std::string_view what, std::string_view file, std::string_view detail,
                std::string_view expected, std::string_view found) {
  throw Error(ErrorKind::input, fmt::format("{} (expected {}, found {})", join(what, file, detail),
                                            one_line(expected), one_line(found)));
}

void fail_usage(std::string_view what, std::string_view detail) {
  throw Error(ErrorKind::usage, join(what, "", detail));
}

void fail(std::string_view what, std::string_view file, std::string_view detail) {
  throw Error(ErrorKind::failed, join(what, file, detail));
}

bool is_plain_text(std::string_view text) {
  for (std::size_t i = 0, length = 0; i < text.size(); i += length) {
    length = printable_length(text.substr(i));
    if (length == 0) return false;
  }
  return true;
}

std::string quoted(std::string_view text, std::size_t limit) {
  const std::string shown = printable(text, limit);
  return fmt::format("\"{}{}\"", shown, limit < text.size() ? "…" : "");
}

}  // namespace quantmap
