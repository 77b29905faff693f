// Runs and their schemes.
#include "store/rows.hpp"
#include "store/state.hpp"

namespace quantmap {
namespace {

std::optional<RunRecord> last(std::vector<RunRecord> runs) {
  if (runs.empty()) return std::nullopt;
  return std::move(runs.back());
}

}  // namespace

std::int64_t Database::start_run(const RunRecord& run, std::span<const SchemeRecord> schemes) {
  return state_->in_transaction([&] { return state_->insert_run(run, schemes); });
}

std::int64_t Database::State::insert_run(const RunRecord& run, std::span<const SchemeRecord> schemes) {
  RunRecord started = run;
  started.status = "running";
  store::Inserter<RunRecord>{db}(started);
  const std::int64_t id = db.getLastInsertRowid();
  store::Inserter<SchemeRecord> insert(db, id);
  for (const SchemeRecord& scheme : schemes) insert(scheme);
  return id;
}

std::optional<RunRecord> Database::find_run(std::string_view key) const {
  return store::guarded(state_->file, [&] {
    SQLite::Statement statement(state_->db, store::select_sql<RunRecord>("key = ?"));
    statement.bind(1, std::string(key));
    return last(store::read_rows<RunRecord>(statement));
  });
}

std::optional<RunRecord> Database::run(std::int64_t id) const {
  return store::guarded(state_->file, [&] {
    SQLite::Statement statement(state_->db, store::select_sql<RunRecord>("id = ?"));
    statement.bind(1, id);
    return last(store::read_rows<RunRecord>(statement));
  });
}

std::vector<RunRecord> Database::runs() const {
  return store::guarded(state_->file, [&] {
    SQLite::Statement statement(state_->db, store::select_sql<RunRecord>("true"));
    return store::read_rows<RunRecord>(statement);
  });
}

std::vector<SchemeRecord> Database::schemes(std::int64_t run) const {
  return store::guarded(state_->file, [&] { return store::rows_of_run<SchemeRecord>(state_->db, run); });
}

}  // namespace quantmap
