#include "core/error.hpp"

#include <fmt/format.h>

namespace quantmap {
namespace {

std::string join(std::string_view what, std::string_view file, std::string_view detail) {
  std::string line(what);
  for (std::string_view part : {file, detail}) {
    if (part.empty()) continue;
    if (!line.empty()) line += ": ";
    line += part;
  }
  return line;
}

// Length of the well-formed UTF-8 sequence at the start of `text`, 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80 ? 1 : lead >= 0xC2 && lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (length == 3 && lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (length == 4 && ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F))) return 0;
  return length;
}

}  // namespace

void fail_input(std::string_view what, std::string_view file, std::string_view detail) {
  throw Error(ErrorKind::input, join(what, file, detail));
}

void fail_input(std::string_view what, std::string_view file, std::string_view detail,
                std::string_view expected, std::string_view found) {
  throw Error(ErrorKind::input,
              fmt::format("{} (expected {}, found {})", join(what, file, detail), expected, found));
}

void fail_usage(std::string_view what, std::string_view detail) {
  throw Error(ErrorKind::usage, join(what, "", detail));
}

void fail(std::string_view what, std::string_view file, std::string_view detail) {
  throw Error(ErrorKind::failed, join(what, file, detail));
}

std::string quoted(std::string_view text, std::size_t limit) {
  std::string out = "\"";
  std::size_t i = 0;
  while (i < text.size() && i < limit) {
    const std::size_t length = utf8_length(text.substr(i));
    const auto byte = static_cast<unsigned char>(text[i]);
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02X}", byte);
      ++i;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  out += i < text.size() ? "…\"" : "\"";
  return out;
}

}  // namespace quantmap
