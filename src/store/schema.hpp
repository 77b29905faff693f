// Which schema a database has, and bringing it to the one that this program knows.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace quantmap::store {

inline constexpr int kApplicationId = 0x514D4150;  // 'QMAP', PRAGMA application_id

// `sql` makes the newest version from nothing; migrations[i] makes version i + 2 of version i + 1, so
// versions are never skipped and the newest is known by counting.
struct Schema {
  std::string_view sql;
  std::span<const std::string_view> migrations;
  int version() const { return static_cast<int>(migrations.size()) + 1; }
};
Schema current_schema();

// Opens for writing: creates the file if it is absent, migrates an older schema, sets WAL, and refuses what
// is not ours (Error). A new schema and a migration are one transaction each: killed at any moment, the file
// is as before. Before a migration the old file is copied to a name of its own beside it, `NAME.v2` (then
// `NAME.v2.2`, …), which `kept` gets.
SQLite::Database open_for_writing(const std::filesystem::path& path, const Schema& schema,
                                  std::filesystem::path* kept = nullptr);

// Whether the file is a database of quantmap with a schema older than this one. Of a file that cannot be
// read it says no: whoever opens it next says why.
bool is_outdated(const std::filesystem::path& path, const Schema& schema);

// Opens an existing database of exactly this schema for reading only; also while another process writes,
// after a writer was killed, and in a folder where nothing may be written.
SQLite::Database open_for_reading(const std::filesystem::path& path, const Schema& schema);

}  // namespace quantmap::store
