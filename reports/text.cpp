#include "reports/text.hpp"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <cmath>

namespace quantmap {
namespace {

bool is_unsafe(UChar32 c) {
  const int type = u_charType(c);
  return type == U_CONTROL_CHAR || type == U_LINE_SEPARATOR || type == U_PARAGRAPH_SEPARATOR ||
         u_hasBinaryProperty(c, UCHAR_BIDI_CONTROL);
}

std::size_t width_of(UChar32 c) {
  const int type = u_charType(c);
  if (type == U_NON_SPACING_MARK || type == U_ENCLOSING_MARK || type == U_FORMAT_CHAR) return 0;
  const int width = u_getIntPropertyValue(c, UCHAR_EAST_ASIAN_WIDTH);
  return width == U_EA_WIDE || width == U_EA_FULLWIDTH ? 2 : 1;
}

}  // namespace

std::string printable(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  const auto size = static_cast<std::int64_t>(text.size());
  for (std::int64_t i = 0; i < size;) {
    const std::int64_t start = i;
    UChar32 c = 0;
    U8_NEXT(text.data(), i, size, c);
    if (c < 0) {  // each byte by itself, so that no valid character after it is swallowed
      i = start + 1;
      out += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[static_cast<std::size_t>(start)]));
    } else if (is_unsafe(c) && !(keep_lines && (c == '\t' || c == '\r' || c == '\n'))) {
      out += c < 0x80 ? fmt::format("\\x{:02X}", c) : fmt::format("\\u{{{:X}}}", c);
    } else {
      out += text.substr(static_cast<std::size_t>(start), static_cast<std::size_t>(i - start));
    }
  }
  return out;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  const auto size = static_cast<std::int64_t>(text.size());
  for (std::int64_t i = 0; i < size;) {
    UChar32 c = 0;
    U8_NEXT(text.data(), i, size, c);
    width += c < 0 ? 1 : width_of(c);
  }
  return width;
}

std::string short_number(double value, int digits) {
  constexpr double kPlainBelow = 1e15;  // whole doubles are exact up to 2^53
  if (!std::isfinite(value)) return fmt::format("{}", value);
  const double magnitude = std::abs(value);
  if (magnitude < kPlainBelow && (value == std::floor(value) || magnitude >= std::pow(10.0, digits)))
    return fmt::format("{:.0f}", value == 0 ? 0.0 : value);
  std::string text = fmt::format("{:#.{}g}", value, digits);
  // The integer part alone may have all the digits: 123456, not 123456.0.
  const std::size_t point = text.find('.');
  const std::size_t sign = value < 0 ? 1 : 0;
  if (text.find('e') == std::string::npos && point - sign >= static_cast<std::size_t>(digits))
    text.resize(point);
  return text;
}

std::string full_number(double value) { return fmt::format("{}", value); }

std::string shown(const Value& value, const Column& column) {
  if (const auto* number = std::get_if<double>(&value)) return short_number(*number, column.digits);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* text = std::get_if<std::string>(&value)) return printable(*text);
  return "-";
}

bool is_numeric(const Table& table, std::size_t column) {
  bool numbers = false;
  for (const std::vector<Value>& row : table.rows) {
    if (std::holds_alternative<std::string>(row[column])) return false;
    numbers = numbers || !std::holds_alternative<std::monostate>(row[column]);
  }
  return numbers;
}

}  // namespace quantmap
