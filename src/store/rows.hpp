// Records to rows and back, from the field lists of fields.hpp.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include "store/fields.hpp"

namespace quantmap::store {

inline void bind(SQLite::Statement& statement, int index, const std::string& value, Kept kept) {
  if (kept == Kept::blob)
    statement.bind(index, value.data(), static_cast<int>(value.size()));
  else
    statement.bind(index, value);
}
inline void bind(SQLite::Statement& statement, int index, std::int64_t value, Kept) {
  statement.bind(index, value);
}
inline void bind(SQLite::Statement& statement, int index, bool value, Kept) {
  statement.bind(index, value ? 1 : 0);
}
inline void bind(SQLite::Statement& statement, int index, const Number& value, Kept) {
  if (value)
    statement.bind(index, *value);
  else
    statement.bind(index);
}

inline void read(const SQLite::Column& column, std::string& value) {
  value.assign(static_cast<const char*>(column.getBlob()), static_cast<std::size_t>(column.getBytes()));
}
inline void read(const SQLite::Column& column, std::int64_t& value) { value = column.getInt64(); }
inline void read(const SQLite::Column& column, bool& value) { value = column.getInt64() != 0; }
inline void read(const SQLite::Column& column, Number& value) {
  value = column.isNull() ? Number() : Number(column.getDouble());
}

template <class Record>
concept HasStatus = !std::same_as<Record, RunRecord> && requires(Record record) {
  record.status;
};

// The record as it may be stored: SQLite would keep NaN as NULL without a word, so a number that is not
// finite becomes an empty one and `status` says which.
template <HasStatus Record>
Record finite(Record record) {
  std::string lost;
  for_each_field<Record>([&](const auto& field, int) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field.of(record))>, Number>) {
      Number& value = field.of(record);
      if (!value || std::isfinite(*value)) return;
      lost += fmt::format("{}{} is not finite ({})", lost.empty() ? "" : "; ", field.name, *value);
      value.reset();
    }
  });
  if (!lost.empty()) record.status = record.status == "ok" ? lost : record.status + "; " + lost;
  return record;
}

// Inserts records of one type; all but runs belong to `run`.
template <class Record>
class Inserter {
  static constexpr bool kOfRun = !std::same_as<Record, RunRecord>;

 public:
  explicit Inserter(SQLite::Database& db, std::int64_t run = 0, const char* conflict = "")
      : statement_(db, sql() + conflict),
        site_(db, "INSERT OR IGNORE INTO site (layer, site) VALUES (?, ?)") {
    if constexpr (kOfRun) statement_.bind(1, run);
  }

  void operator()(const Record& record) {
    if constexpr (HasStatus<Record>)
      insert(finite(record));
    else
      insert(record);
  }

 private:
  static std::string sql() {
    std::string columns = kOfRun ? "run" : "";
    std::string values = kOfRun ? "?1" : "";
    const char* site_id = "(SELECT id FROM site WHERE layer = ?{} AND site = ?{})";
    int layer = 0;
    for_each_field<Record>([&](const auto& field, int index) {
      const int parameter = index + 1 + kOfRun;
      if (field.kept == Kept::joined) return;
      if (field.kept == Kept::site && layer == 0) {  // `layer` comes first, `site` completes the pair
        layer = parameter;
        return;
      }
      const char* comma = columns.empty() ? "" : ", ";
      columns += fmt::format("{}{}", comma, field.kept == Kept::site ? "site_id" : field.name);
      values += comma;
      values += field.kept == Kept::site ? fmt::format(fmt::runtime(site_id), layer, parameter)
                                         : fmt::format("?{}", parameter);
    });
    return fmt::format("INSERT INTO {} ({}) VALUES ({})", Stored<Record>::table, columns, values);
  }

  void insert(const Record& record) {
    if constexpr (requires { record.site; }) {
      site_.bind(1, record.layer);
      site_.bind(2, record.site);
      site_.exec();
      site_.reset();
    }
    for_each_field<Record>([&](const auto& field, int index) {
      if (field.kept != Kept::joined) bind(statement_, index + 1 + kOfRun, field.of(record), field.kept);
    });
    statement_.exec();
    statement_.reset();
  }

  SQLite::Statement statement_;
  SQLite::Statement site_;
};

// `SELECT fields FROM source WHERE where`; the fields are the first columns.
template <class Record>
std::string select_sql(const char* where) {
  std::string columns;
  for_each_field<Record>(
      [&](const auto& field, int index) { columns += fmt::format("{}{}", index ? ", " : "", field.name); });
  if constexpr (std::same_as<Record, RunRecord>) columns += ", id";
  return fmt::format("SELECT {} FROM {} WHERE {} ORDER BY {}", columns, Stored<Record>::source, where,
                     Stored<Record>::order);
}

template <class Record>
std::vector<Record> read_rows(SQLite::Statement& statement) {
  std::vector<Record> rows;
  while (statement.executeStep()) {
    Record& record = rows.emplace_back();
    for_each_field<Record>(
        [&](const auto& field, int index) { read(statement.getColumn(index), field.of(record)); });
    if constexpr (std::same_as<Record, RunRecord>)
      record.id = statement.getColumn(std::tuple_size_v<decltype(Stored<Record>::fields)>).getInt64();
  }
  return rows;
}

// All records of a run.
template <class Record>
std::vector<Record> rows_of_run(const SQLite::Database& db, std::int64_t run) {
  SQLite::Statement statement(db, select_sql<Record>("run = ?"));
  statement.bind(1, run);
  return read_rows<Record>(statement);
}

}  // namespace quantmap::store
