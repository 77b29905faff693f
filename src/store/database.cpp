#include "store/database.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include "core/error.hpp"
#include "store/schema.hpp"
#include "store/state.hpp"

namespace quantmap {

Database::Database(std::unique_ptr<State> state) : state_(std::move(state)) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

Database Database::open(const std::filesystem::path& path) {
  return Database(
      std::make_unique<State>(State{path.string(), store::open_for_writing(path, store::current_schema())}));
}

Database Database::open_read_only(const std::filesystem::path& path) {
  return Database(
      std::make_unique<State>(State{path.string(), store::open_for_reading(path, store::current_schema())}));
}

std::filesystem::path migrate_database(const std::filesystem::path& path) {
  std::filesystem::path kept;
  if (store::is_outdated(path, store::current_schema()))
    store::open_for_writing(path, store::current_schema(), &kept);
  return kept;
}

void Database::State::require_running(std::int64_t run) {
  SQLite::Statement statement(db, "SELECT status FROM run WHERE id = ?");
  statement.bind(1, run);
  const bool found = statement.executeStep();
  const std::string status = found ? statement.getColumn(0).getString() : "no such run";
  if (status != "running")
    fail(store::kResults, file,
         fmt::format("run {} cannot be written (expected running, found {})", run, status));
}

void Database::State::fail_key(const SQLite::Exception& error, const std::string& what) const {
  switch (error.getExtendedErrorCode()) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
      fail(store::kResults, file, what + ": already stored");
    case SQLITE_CONSTRAINT_FOREIGNKEY:
      fail(store::kResults, file, what + ": no such scheme in the run");
    default:
      throw error;
  }
}

}  // namespace quantmap
