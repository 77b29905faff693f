#include "reports/writers.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "core/error.hpp"
#include "reports/formats.hpp"

namespace quantmap {

OutputFormat parse_output_format(std::string_view name) {
  if (name == "table") return OutputFormat::table;
  if (name == "json") return OutputFormat::json;
  if (name == "csv") return OutputFormat::csv;
  if (name == "md") return OutputFormat::md;
  fail_usage("--format", "unknown format (expected table, json, csv or md, found " + quoted(name) + ")");
}

std::string write(const Table& table, OutputFormat format, int width) {
  switch (format) {
    case OutputFormat::table:
      return write_text(table, width);
    case OutputFormat::json:
      return write_json(table);
    case OutputFormat::csv:
      return write_csv(table);
    case OutputFormat::md:
      return write_markdown(table);
  }
  fail("write", "", "unknown output format");
}

int terminal_width(int fallback) {
  if (const char* set = std::getenv("COLUMNS")) {
    const std::string_view text(set);
    int columns = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (error == std::errc() && end == text.data() + text.size() && columns > 0) return columns;
  }
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return fallback;
}

}  // namespace quantmap
