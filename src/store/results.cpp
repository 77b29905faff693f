// The final rows of a run.
#include <SQLiteCpp/VariadicBind.h>

#include "core/error.hpp"
#include "store/rows.hpp"
#include "store/state.hpp"

namespace quantmap {

void Database::finish_run(std::int64_t run, std::string_view finished_at,
                          std::span<const EvaluationRecord> evaluations,
                          std::span<const LayerErrorRecord> errors,
                          std::span<const ComparisonRecord> comparisons,
                          std::span<const SegmentRecord> segments) {
  state_->in_transaction([&] {
    state_->require_running(run);
    store::Inserter<EvaluationRecord> insert_row(state_->db, run);
    SQLite::Statement insert_note(state_->db, "INSERT INTO evaluation_note VALUES (?, ?, ?, ?)");
    const auto insert_evaluation = [&](const EvaluationRecord& row) {
      insert_row(row);
      for (std::size_t i = 0; i < row.notes.size(); ++i) {
        SQLite::bind(insert_note, run, row.scheme.position, static_cast<std::int64_t>(i), row.notes[i]);
        insert_note.exec();
        insert_note.reset();
      }
    };
    state_->insert_all(evaluations, insert_evaluation, [&](const EvaluationRecord& row) {
      return fmt::format("the evaluation of scheme {} in run {}", row.scheme.position, run);
    });
    state_->insert_errors(run, errors);
    state_->insert_all(comparisons, store::Inserter<ComparisonRecord>(state_->db, run),
                       [&](const ComparisonRecord& row) {
                         return fmt::format("the {} of schemes {} and {} in run {}", row.metric, row.position,
                                            row.than, run);
                       });
    state_->insert_all(
        segments, store::Inserter<SegmentRecord>(state_->db, run), [&](const SegmentRecord& row) {
          return fmt::format("the segment {} of scheme {} in run {}", quoted(row.segment), row.position, run);
        });
    state_->complete_run(run, finished_at);
  });
}

std::int64_t Database::store_run(const RunRecord& run, std::span<const SchemeRecord> schemes,
                                 std::span<const LayerErrorRecord> errors) {
  return state_->in_transaction([&] {
    const std::int64_t id = state_->insert_run(run, schemes);
    state_->insert_errors(id, errors);
    state_->complete_run(id, run.finished_at);
    return id;
  });
}

std::int64_t Database::store_run(const RunRecord& run, std::span<const SchemeRecord> schemes,
                                 std::span<const OutlierRecord> outliers,
                                 std::span<const SiteStatisticsRecord> statistics,
                                 std::span<const OutlierShareRecord> shares) {
  return state_->in_transaction([&] {
    const std::int64_t id = state_->insert_run(run, schemes);
    const auto what = [&](const auto& row) { return fmt::format("{} in run {}", quoted(row.site), id); };
    state_->insert_all(outliers, store::Inserter<OutlierRecord>(state_->db, id), what);
    state_->insert_all(statistics, store::Inserter<SiteStatisticsRecord>(state_->db, id), what);
    state_->insert_all(shares, store::Inserter<OutlierShareRecord>(state_->db, id), what);
    state_->complete_run(id, run.finished_at);
    return id;
  });
}

void Database::State::insert_errors(std::int64_t run, std::span<const LayerErrorRecord> errors) {
  insert_all(errors, store::Inserter<LayerErrorRecord>(db, run), [&](const LayerErrorRecord& row) {
    return fmt::format("the {} {} error of {}, scheme {}, in run {}", row.scope, row.kind, quoted(row.site),
                       row.scheme_position, run);
  });
}

void Database::State::complete_run(std::int64_t run, std::string_view finished_at) {
  SQLite::Statement drop(db, "DELETE FROM state WHERE run = ?");
  drop.bind(1, run);
  drop.exec();
  SQLite::Statement complete(db, "UPDATE run SET status = 'complete', finished_at = ? WHERE id = ?");
  complete.bind(1, std::string(finished_at));
  complete.bind(2, run);
  complete.exec();
}

std::vector<EvaluationRecord> Database::evaluations(std::int64_t run) const {
  return store::guarded(state_->file, [&] {
    auto rows = store::rows_of_run<EvaluationRecord>(state_->db, run);
    SQLite::Statement notes(
        state_->db, "SELECT note FROM evaluation_note WHERE run = ? AND position = ? ORDER BY ordinal");
    for (EvaluationRecord& row : rows) {
      SQLite::bind(notes, run, row.scheme.position);
      while (notes.executeStep()) store::read(notes.getColumn(0), row.notes.emplace_back());
      notes.reset();
    }
    return rows;
  });
}

std::vector<SegmentRecord> Database::segments(std::int64_t run) const {
  return store::guarded(state_->file, [&] { return store::rows_of_run<SegmentRecord>(state_->db, run); });
}

std::vector<ComparisonRecord> Database::comparisons(std::int64_t run) const {
  return store::guarded(state_->file, [&] { return store::rows_of_run<ComparisonRecord>(state_->db, run); });
}

std::vector<LayerErrorRecord> Database::layer_errors(std::int64_t run) const {
  return store::guarded(state_->file, [&] { return store::rows_of_run<LayerErrorRecord>(state_->db, run); });
}

std::vector<SiteStatisticsRecord> Database::site_statistics(std::int64_t run) const {
  return store::guarded(state_->file,
                        [&] { return store::rows_of_run<SiteStatisticsRecord>(state_->db, run); });
}

std::vector<OutlierShareRecord> Database::outlier_shares(std::int64_t run) const {
  return store::guarded(state_->file,
                        [&] { return store::rows_of_run<OutlierShareRecord>(state_->db, run); });
}

}  // namespace quantmap
