// `csv`: RFC 4180 (lines end in CR LF). Null is an empty field, an empty text is "".
#include <fmt/format.h>

#include "reports/formats.hpp"
#include "reports/text.hpp"

namespace quantmap {
namespace {

std::string field(const std::string& text) {
  std::string safe = printable(text, /*keep_lines=*/true);
  if (!safe.empty() && safe.find_first_of(",\"\r\n") == std::string::npos) return safe;
  std::string out = "\"";
  for (const char c : safe) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string field(const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return full_number(*number);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* text = std::get_if<std::string>(&value)) return field(*text);
  return "";
}

}  // namespace

std::string write_csv(const Table& table) {
  std::string out;
  const auto add_line = [&](const auto& cells, auto&& text_of) {
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) out += ',';
      out += text_of(cells[c]);
    }
    out += "\r\n";
  };
  add_line(table.columns, [](const Column& column) { return field(column.name); });
  for (const std::vector<Value>& row : table.rows)
    add_line(row, [](const Value& value) { return field(value); });
  return out;
}

}  // namespace quantmap
