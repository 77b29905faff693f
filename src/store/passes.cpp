// Passes of a run under way: what resume continues from.
#include "core/error.hpp"
#include "store/rows.hpp"
#include "store/state.hpp"

namespace quantmap {

void Database::store_pass(std::int64_t run, std::span<const WindowRecord> windows,
                          std::span<const StateRecord> states, std::span<const OutlierRecord> outliers,
                          std::span<const TaskItemRecord> items) {
  state_->in_transaction([&] {
    state_->require_running(run);
    state_->insert_all(windows, store::Inserter<WindowRecord>(state_->db, run), [&](const WindowRecord& row) {
      return fmt::format("window {} of scheme {} in run {}", row.window, row.scheme_position, run);
    });
    const char* replace = " ON CONFLICT (run, position) DO UPDATE SET state = excluded.state";
    state_->insert_all(states, store::Inserter<StateRecord>(state_->db, run, replace),
                       [&](const StateRecord& row) {
                         return fmt::format("the state of scheme {} in run {}", row.scheme_position, run);
                       });
    state_->insert_all(
        outliers, store::Inserter<OutlierRecord>(state_->db, run), [&](const OutlierRecord& row) {
          return fmt::format("the outlier of {}, window {}, in run {}", quoted(row.site), row.window, run);
        });
    state_->insert_items(run, items);
  });
}

std::int64_t Database::stored_windows(std::int64_t run) const {
  return store::guarded(state_->file, [&] {
    SQLite::Statement whole(
        state_->db,
        "SELECT window FROM window WHERE run = ?1 GROUP BY window"
        " HAVING count(*) = (SELECT count(*) FROM scheme WHERE run = ?1) ORDER BY window");
    whole.bind(1, run);
    std::int64_t next = 0;
    while (whole.executeStep() && whole.getColumn(0).getInt64() == next) ++next;
    return next;
  });
}

std::vector<WindowRecord> Database::windows(std::int64_t run, std::int64_t scheme_position) const {
  return store::guarded(state_->file, [&] {
    SQLite::Statement statement(state_->db, store::select_sql<WindowRecord>("run = ? AND position = ?"));
    statement.bind(1, run);
    statement.bind(2, scheme_position);
    return store::read_rows<WindowRecord>(statement);
  });
}

std::vector<StateRecord> Database::states(std::int64_t run) const {
  return store::guarded(state_->file, [&] { return store::rows_of_run<StateRecord>(state_->db, run); });
}

std::vector<OutlierRecord> Database::outliers(std::int64_t run) const {
  return store::guarded(state_->file, [&] { return store::rows_of_run<OutlierRecord>(state_->db, run); });
}

}  // namespace quantmap
