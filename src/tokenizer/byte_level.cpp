#include "tokenizer/byte_level.hpp"

#include <array>

#include "tokenizer/unicode.hpp"

namespace quantmap {
namespace {

constexpr int kNone = -1;

struct Tables {
  std::array<std::string, 256> spelling;
  std::array<int, 0x180> byte{};
  Tables() {
    byte.fill(kNone);
    char32_t spare = 0x100;
    for (int value = 0; value < 256; ++value) {
      const auto code = static_cast<char32_t>(value);
      const bool printable = (code >= 0x21 && code <= 0x7E) || (code >= 0xA1 && code <= 0xFF && code != 0xAD);
      const char32_t character = printable ? code : spare++;
      byte[character] = value;
      append_character(spelling[static_cast<std::size_t>(value)], character);
    }
  }
};

const Tables& tables() {
  static const Tables instance;
  return instance;
}

}  // namespace

std::string byte_level_encode(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 2);
  for (const char byte : bytes) text += tables().spelling[static_cast<unsigned char>(byte)];
  return text;
}

std::optional<std::string> byte_level_decode(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size();) {
    const char32_t character = next_character(text, i);
    const int byte = character < tables().byte.size() ? tables().byte[character] : kNone;
    if (byte == kNone) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace quantmap
