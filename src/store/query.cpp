// Read-only SQL. Three guards, each enough for what it covers: the file is opened read-only, an authorizer
// refuses whatever is not reading (ATTACH and PRAGMA change no file that is open, yet are not reading), and
// exactly one statement that returns rows is run.
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <memory>

#include "core/error.hpp"
#include "store/database.hpp"
#include "store/schema.hpp"
#include "store/sqlite_error.hpp"

namespace quantmap {
namespace {

constexpr const char* kQuery = "query";
// A table is held whole; a join gone wrong must not fill the memory (of this many, about 400 MiB).
constexpr std::size_t kMaxValues = 4'000'000;
using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

// Pragmas that only describe; true: takes a table's name.
bool describes(std::string_view pragma, bool argument) {
  static constexpr std::array<std::pair<std::string_view, bool>, 9> kDescribing{{
      {"table_info", true},
      {"table_xinfo", true},
      {"table_list", true},
      {"index_list", true},
      {"index_info", true},
      {"foreign_key_list", true},
      {"database_list", false},
      {"user_version", false},
      {"application_id", false},
  }};
  return std::any_of(kDescribing.begin(), kDescribing.end(),
                     [&](const auto& entry) { return entry.first == pragma && (entry.second || !argument); });
}

int authorize(void*, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return std::string_view(second) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_UPDATE:  // asked when a table-valued function such as json_each declares its columns; SQLite
                         // itself refuses a statement that would do it
      return std::string_view(first) == "sqlite_master" ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_PRAGMA:
      return describes(first, second != nullptr) ? SQLITE_OK : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

[[noreturn]] void fail_statement(sqlite3* db, int code, const std::string& file, std::string_view sql) {
  switch (code & 0xFF) {
    case SQLITE_AUTH:
    case SQLITE_READONLY:
      fail_usage(kQuery, fmt::format("only reading is allowed (expected one SELECT, found {})", quoted(sql)));
    case SQLITE_BUSY:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
      store::fail_sqlite(SQLite::Exception(db, code), file);
    default:
      fail_usage(kQuery, store::one_line(sqlite3_errmsg(db)));
  }
}

// The first statement of sql, and what follows it; null where there is only white space or a comment.
Statement prepare(sqlite3* db, const std::string& file, std::string_view sql, std::string_view& rest) {
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  const int code = sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &raw, &tail);
  Statement statement(raw, &sqlite3_finalize);
  if (code != SQLITE_OK) fail_statement(db, code, file, sql);
  rest = sql.substr(static_cast<std::size_t>(tail - sql.data()));
  return statement;
}

Statement prepare_only(sqlite3* db, const std::string& file, std::string_view sql) {
  if (sql.find('\0') != std::string_view::npos) fail_usage(kQuery, "a NUL byte in the statement");
  std::string_view rest;
  Statement statement = prepare(db, file, sql, rest);
  if (!statement) fail_usage(kQuery, "no statement (expected one SELECT, found nothing)");
  while (!rest.empty()) {
    const std::string_view second = rest;
    if (prepare(db, file, second, rest))
      fail_usage(kQuery,
                 fmt::format("more than one statement (expected one SELECT, found also {})", quoted(second)));
  }
  if (!sqlite3_stmt_readonly(statement.get()) || sqlite3_column_count(statement.get()) == 0)
    fail_usage(kQuery, fmt::format("returns no rows (expected one SELECT, found {})", quoted(sql)));
  return statement;
}

Value value_at(sqlite3_stmt* row, int column) {
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
      return static_cast<std::int64_t>(sqlite3_column_int64(row, column));
    case SQLITE_FLOAT:
      return sqlite3_column_double(row, column);
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
      return std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(row, column)));
    }
    case SQLITE_BLOB:
      return fmt::format("<{} bytes>", sqlite3_column_bytes(row, column));
    default:
      return std::monostate();
  }
}

void bind_value(sqlite3_stmt* statement, int index, const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    sqlite3_bind_int64(statement, index, *integer);
  else if (const auto* real = std::get_if<double>(&value))
    sqlite3_bind_double(statement, index, *real);
  else if (const auto* text = std::get_if<std::string>(&value))
    sqlite3_bind_text(statement, index, text->data(), static_cast<int>(text->size()), SQLITE_TRANSIENT);
  else
    sqlite3_bind_null(statement, index);
}

void bind_parameters(sqlite3_stmt* statement, std::span<const Parameter> parameters) {
  for (const Parameter& parameter : parameters) {
    const int index = sqlite3_bind_parameter_index(statement, (":" + parameter.name).c_str());
    if (index == 0) fail_usage(kQuery, fmt::format("no parameter :{} in the statement", parameter.name));
    bind_value(statement, index, parameter.value);
  }
  for (int index = 1; index <= sqlite3_bind_parameter_count(statement); ++index) {
    const char* name = sqlite3_bind_parameter_name(statement, index);
    if (!name || *name != ':') fail_usage(kQuery, "a parameter without a name (expected :name)");
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&](const Parameter& parameter) { return parameter.name == name + 1; }))
      fail_usage(kQuery, fmt::format("no value for the parameter {0} (--set {1}=VALUE)", name, name + 1));
  }
}

}  // namespace

Table query_database(const std::filesystem::path& path, std::string_view sql,
                     std::span<const Parameter> parameters) {
  const std::string file = path.string();
  const SQLite::Database connection = store::open_for_reading(path, store::current_schema());
  sqlite3* db = connection.getHandle();
  sqlite3_set_authorizer(db, authorize, nullptr);
  // A misspelt "column" is an error, not a text.
  sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  const Statement statement = prepare_only(db, file, sql);
  bind_parameters(statement.get(), parameters);

  Table table;
  const int columns = sqlite3_column_count(statement.get());
  for (int i = 0; i < columns; ++i)
    table.columns.push_back({.name = sqlite3_column_name(statement.get(), i)});
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {
    if (table.rows.size() * static_cast<std::size_t>(columns) >= kMaxValues)
      fail_usage(kQuery, fmt::format("more than {} values (a LIMIT helps)", kMaxValues));
    std::vector<Value>& row = table.rows.emplace_back();
    for (int i = 0; i < columns; ++i) row.push_back(value_at(statement.get(), i));
  }
  if (code != SQLITE_DONE) fail_statement(db, code, file, sql);
  return table;
}

}  // namespace quantmap
