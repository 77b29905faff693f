// Answers to tasks' items, and their scores.
#include <SQLiteCpp/VariadicBind.h>

#include <cmath>

#include "store/rows.hpp"
#include "store/state.hpp"

namespace quantmap {
namespace {

void know_task(SQLite::Statement& statement, const std::string& task) {
  statement.bind(1, task);
  statement.exec();
  statement.reset();
}
constexpr const char* kKnowTask = "INSERT OR IGNORE INTO task (task) VALUES (?)";

// SQLite keeps NaN as NULL; so does this, in sight.
Number storable(const Number& value) { return value && std::isfinite(*value) ? value : std::nullopt; }

Number number(const SQLite::Column& column) {
  Number value;
  store::read(column, value);
  return value;
}

}  // namespace

void Database::State::insert_items(std::int64_t run, std::span<const TaskItemRecord> items) {
  if (items.empty()) return;
  SQLite::Statement task(db, kKnowTask);
  SQLite::Statement insert(
      db,
      "INSERT INTO task_item (run, position, task_id, item, choice, loglikelihood, gold, greedy)"
      " VALUES (?, ?, (SELECT id FROM task WHERE task = ?), ?, ?, ?, ?, ?)");
  const auto insert_one = [&](const TaskItemRecord& row) {
    know_task(task, row.task);
    SQLite::bind(insert, run, row.scheme_position, row.task, row.item, row.choice);
    store::bind(insert, 6, storable(row.loglikelihood), store::Kept::column);
    store::bind(insert, 7, row.gold, store::Kept::column);
    store::bind(insert, 8, row.greedy, store::Kept::column);
    insert.exec();
    insert.reset();
  };
  insert_all(items, insert_one, [&](const TaskItemRecord& row) {
    return fmt::format("choice {} of item {} of {}, scheme {}, in run {}", row.choice, row.item, row.task,
                       row.scheme_position, run);
  });
}

void Database::store_task_scores(std::int64_t run, std::span<const TaskScoreRecord> scores) {
  state_->in_transaction([&] {
    state_->require_running(run);
    SQLite::Statement task(state_->db, kKnowTask);
    SQLite::Statement insert(
        state_->db,
        "INSERT OR REPLACE INTO task_score (run, position, task_id, items, acc, acc_stderr, acc_norm, "
        "acc_norm_stderr, acc_bytes, acc_tokens, ppl, flips, status)"
        " VALUES (?, ?, (SELECT id FROM task WHERE task = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const TaskScoreRecord& row : scores) {
      know_task(task, row.task);
      SQLite::bind(insert, run, row.scheme_position, row.task, row.items);
      int index = 5;
      for (const Number& value : {row.acc, row.acc_stderr, row.acc_norm, row.acc_norm_stderr, row.acc_bytes,
                                  row.acc_tokens, row.ppl})
        store::bind(insert, index++, storable(value), store::Kept::column);
      insert.bind(12, row.flips);
      insert.bind(13, row.status);
      insert.exec();
      insert.reset();
    }
  });
}

std::int64_t Database::stored_items(std::int64_t run) const {
  return store::guarded(state_->file, [&] {
    SQLite::Statement whole(
        state_->db,
        "SELECT count(*) FROM (SELECT 1 FROM task_item WHERE run = ?1 GROUP BY task_id, item"
        " HAVING count(DISTINCT position) = (SELECT count(*) FROM scheme WHERE run = ?1))");
    whole.bind(1, run);
    whole.executeStep();
    return whole.getColumn(0).getInt64();
  });
}

std::vector<TaskItemRecord> Database::task_items(std::int64_t run, std::int64_t scheme_position) const {
  return store::guarded(state_->file, [&] {
    SQLite::Statement select(
        state_->db,
        "SELECT task, item, choice, loglikelihood, gold, greedy FROM task_item JOIN task ON task.id = task_id"
        " WHERE run = ? AND position = ? ORDER BY task_id, item, choice");
    SQLite::bind(select, run, scheme_position);
    std::vector<TaskItemRecord> rows;
    while (select.executeStep()) {
      TaskItemRecord& row = rows.emplace_back();
      row.scheme_position = scheme_position;
      row.task = select.getColumn(0).getString();
      row.item = select.getColumn(1).getInt64();
      row.choice = select.getColumn(2).getInt64();
      row.loglikelihood = number(select.getColumn(3));
      row.gold = select.getColumn(4).getInt() != 0;
      row.greedy = select.getColumn(5).getInt() != 0;
    }
    return rows;
  });
}

std::vector<TaskScoreRecord> Database::task_scores(std::int64_t run) const {
  return store::guarded(state_->file, [&] {
    SQLite::Statement select(
        state_->db,
        "SELECT position, scheme, task, items, acc, acc_stderr, acc_norm, acc_norm_stderr, "
        "acc_bytes, acc_tokens, ppl, flips, status FROM task_scores WHERE run = ?"
        " ORDER BY task, position");
    select.bind(1, run);
    std::vector<TaskScoreRecord> rows;
    while (select.executeStep()) {
      TaskScoreRecord& row = rows.emplace_back();
      row.scheme_position = select.getColumn(0).getInt64();
      row.scheme = select.getColumn(1).getString();
      row.task = select.getColumn(2).getString();
      row.items = select.getColumn(3).getInt64();
      int index = 4;
      for (Number* value : {&row.acc, &row.acc_stderr, &row.acc_norm, &row.acc_norm_stderr, &row.acc_bytes,
                            &row.acc_tokens, &row.ppl})
        *value = number(select.getColumn(index++));
      row.flips = select.getColumn(11).getInt64();
      row.status = select.getColumn(12).getString();
    }
    return rows;
  });
}

}  // namespace quantmap
