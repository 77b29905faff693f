#include "app/bench_rows.hpp"

#include <algorithm>

namespace quantmap {
namespace {

std::vector<Value> cells(const BenchRow& row) {
  std::vector<Value> cells(12);  // as kColumns; null where a row has nothing to say
  const Spread rate = spread_of(row.values);
  cells[0] = row.name;
  cells[1] = row.shape;
  cells[2] = row.unit;
  cells[3] = rate.median;
  cells[4] = rate.min;
  cells[5] = rate.max;
  cells[6] = static_cast<std::int64_t>(row.values.size());
  if (row.bytes_rate) cells[7] = *row.bytes_rate;
  if (row.ratios.empty()) return cells;
  const Spread ratio = spread_of(row.ratios);
  cells[8] = ratio.median;
  cells[9] = ratio.min;
  cells[10] = ratio.max;
  cells[11] = row.ratio_to;
  return cells;
}

const std::vector<Column> kColumns = {{"what"},     {"shape"},        {"unit"},         {"median", 4},
                                      {"min", 4},   {"max", 4},       {"runs"},         {"read GB/s", 3},
                                      {"ratio", 3}, {"ratio min", 3}, {"ratio max", 3}, {"ratio to"}};

}  // namespace

double seconds_of_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {values.front(), median, values.back()};
}

std::vector<Table> section_tables(std::span<const BenchRow> rows) {
  std::vector<Table> tables;
  for (const BenchRow& row : rows) {
    if (tables.empty() || tables.back().title != row.section) {
      tables.emplace_back();
      tables.back().title = row.section;
      tables.back().columns = kColumns;
    }
    tables.back().rows.push_back(cells(row));
  }
  // A column that says nothing in a section only takes room.
  for (Table& table : tables)
    for (std::size_t c = table.columns.size(); c-- > 1;) {
      const bool empty = std::all_of(
          table.rows.begin(), table.rows.end(),
          [&](const std::vector<Value>& row) { return std::holds_alternative<std::monostate>(row[c]); });
      if (!empty) continue;
      table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(c));
      for (std::vector<Value>& row : table.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(c));
    }
  return tables;
}

Table flat_table(std::span<const BenchRow> rows, const std::string& machine, const std::string& model) {
  Table table;
  table.columns = {{"machine"}, {"model"}, {"section"}};
  table.columns.insert(table.columns.end(), kColumns.begin(), kColumns.end());
  for (const BenchRow& row : rows) {
    std::vector<Value> line{machine, model, row.section};
    for (Value& value : cells(row)) line.push_back(std::move(value));
    table.rows.push_back(std::move(line));
  }
  return table;
}

}  // namespace quantmap
