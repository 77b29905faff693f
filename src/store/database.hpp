// The results database: SQLite through SQLiteCpp, WAL, one transaction for a result, so `kill -9` at any
// moment loses at most the pass under way and the file always opens. One schema file (schema.sql, compiled
// in), a `schema_version`, forward migrations. Every error names the file: a database of another schema, a
// file that is no database, one in use by a writer for more than the busy timeout.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/table.hpp"
#include "store/records.hpp"

namespace quantmap {

class Database {
 public:
  // Creates the file and its schema if it is absent.
  static Database open(const std::filesystem::path& path);
  // An existing file of today's schema, for reading only.
  static Database open_read_only(const std::filesystem::path& path);
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  // Writes the run and its schemes (status running); returns its id.
  std::int64_t start_run(const RunRecord& run, std::span<const SchemeRecord> schemes);
  // The newest run of a key, complete or not.
  std::optional<RunRecord> find_run(std::string_view key) const;
  std::optional<RunRecord> run(std::int64_t id) const;
  std::vector<RunRecord> runs() const;  // all of them, by id

  // One pass: all its windows and the state after it, in one transaction. A window already stored is an
  // error.
  void store_pass(std::int64_t run, std::span<const WindowRecord> windows,
                  std::span<const StateRecord> states, std::span<const OutlierRecord> outliers,
                  std::span<const TaskItemRecord> items = {});
  std::int64_t stored_items(std::int64_t run) const;  // of tasks, complete for every scheme
  std::vector<TaskItemRecord> task_items(std::int64_t run, std::int64_t scheme_position) const;  // as stored
  std::vector<TaskScoreRecord> task_scores(std::int64_t run) const;  // by task in stored order, scheme
  std::int64_t stored_windows(std::int64_t run) const;  // windows complete for every scheme, from 0 on
  std::vector<WindowRecord> windows(std::int64_t run, std::int64_t scheme_position) const;  // in window order
  std::vector<StateRecord> states(std::int64_t run) const;

  // Everything final in one transaction; the run becomes complete, running state is dropped (windows are
  // kept: paired comparisons need them).
  void finish_run(std::int64_t run, std::string_view finished_at,
                  std::span<const EvaluationRecord> evaluations, std::span<const LayerErrorRecord> errors,
                  std::span<const ComparisonRecord> comparisons = {},
                  std::span<const SegmentRecord> segments = {});

  // Task scores of a run that is not complete yet; those already there are replaced.
  void store_task_scores(std::int64_t run, std::span<const TaskScoreRecord> scores);

  // A run that was measured in one piece: begun and finished in one transaction. Returns its id.
  std::int64_t store_run(const RunRecord& run, std::span<const SchemeRecord> schemes,
                         std::span<const LayerErrorRecord> errors);

  // The same for a run of `outliers`.
  std::int64_t store_run(const RunRecord& run, std::span<const SchemeRecord> schemes,
                         std::span<const OutlierRecord> outliers,
                         std::span<const SiteStatisticsRecord> statistics,
                         std::span<const OutlierShareRecord> shares);

  std::vector<SchemeRecord> schemes(std::int64_t run) const;
  std::vector<EvaluationRecord> evaluations(std::int64_t run) const;
  std::vector<ComparisonRecord> comparisons(std::int64_t run) const;
  std::vector<SegmentRecord> segments(std::int64_t run) const;  // as they were given
  std::vector<LayerErrorRecord> layer_errors(std::int64_t run) const;
  std::vector<OutlierRecord> outliers(std::int64_t run) const;
  std::vector<SiteStatisticsRecord> site_statistics(std::int64_t run) const;
  std::vector<OutlierShareRecord> outlier_shares(std::int64_t run) const;

 private:
  struct State;
  explicit Database(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Brings a database of an older schema to this program's and returns the name of the copy that was kept of
// the old file (`r.db.v2`); empty where there was nothing to do or no file. Database::open does the same
// without a word; a command calls this first, to say so.
std::filesystem::path migrate_database(const std::filesystem::path& path);

// A value for `:name` in a statement.
struct Parameter {
  std::string name;
  Value value;
};

// Read-only SQL on an existing database: one statement that returns rows. Anything that would write is
// refused (usage) before it runs; the file is opened read-only. The schema is checked first. Every parameter
// of the statement needs its value (null is one) and every value its parameter, else Error (usage).
Table query_database(const std::filesystem::path& path, std::string_view sql,
                     std::span<const Parameter> parameters = {});

}  // namespace quantmap
