// A result as rows of values: what queries return and what the writers in reports/ print as table, CSV, JSON
// or Markdown. Plain data; nothing here formats.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace quantmap {

using Value = std::variant<std::monostate, std::int64_t, double, std::string>;  // monostate: null

struct Column {
  std::string name;
  int digits = 6;  // significant digits in `table` and `md`; CSV and JSON keep every digit (17)
};

struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Value>> rows;  // each as long as columns
  std::vector<std::string> notes;        // printed below a table, never in CSV
};

}  // namespace quantmap
