// What a Database holds, and the two things that every write does.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>
#include <type_traits>

#include "store/database.hpp"
#include "store/sqlite_error.hpp"

namespace quantmap {

struct Database::State {
  std::string file;  // as errors name it
  SQLite::Database db;

  // One transaction around work(); nothing of it is kept if it throws. IMMEDIATE takes the write lock at
  // once, so that a waiting writer never fails half-way.
  template <class Work>
  auto in_transaction(Work&& work) {
    return store::guarded(file, [&] {
      SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
      if constexpr (std::is_void_v<decltype(work())>) {
        work();
        transaction.commit();
      } else {
        auto result = work();
        transaction.commit();
        return result;
      }
    });
  }

  // Parts of a transaction (runs.cpp, results.cpp).
  std::int64_t insert_run(const RunRecord& run, std::span<const SchemeRecord> schemes);
  void insert_errors(std::int64_t run, std::span<const LayerErrorRecord> errors);
  void insert_items(std::int64_t run, std::span<const TaskItemRecord> items);
  void complete_run(std::int64_t run, std::string_view finished_at);

  // Throws unless the run exists and is not complete: a finished run never changes.
  void require_running(std::int64_t run);

  // insert(record) for each; a broken key becomes an error that says what was there already or belongs
  // nowhere.
  template <class Records, class Insert, class Describe>
  void insert_all(const Records& records, Insert&& insert, Describe&& describe) {
    for (const auto& record : records) {
      try {
        insert(record);
      } catch (const SQLite::Exception& error) {
        fail_key(error, describe(record));
      }
    }
  }

 private:
  [[noreturn]] void fail_key(const SQLite::Exception& error, const std::string& what) const;
};

}  // namespace quantmap
