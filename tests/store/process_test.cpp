// Other processes: killed while writing, writing while we read, holding the lock.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <SQLiteCpp/SQLiteCpp.h>

#include <csignal>
#include <functional>

#include "core/error.hpp"
#include "core/random.hpp"
#include "sample.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

using namespace testing;

// Runs work() in a child of this process; its exit status is what work() returns, 99 where it throws.
pid_t in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  int status = 99;
  try {
    status = work();
  } catch (const std::exception& error) {
    std::fputs((std::string(error.what()) + "\n").c_str(), stderr);
  }
  ::_exit(status);
}

int exit_status(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Starts work in a child and kills it `microseconds` later. Returns false if it ended by itself.
bool kill_after(unsigned microseconds, const std::function<int()>& work) {
  const pid_t child = in_child(work);
  ::usleep(microseconds);
  ::kill(child, SIGKILL);
  return exit_status(child) == 128 + SIGKILL;
}

constexpr int kSchemes = 4;
constexpr int kPass = 3;  // windows in a pass

// Goes on where the database stands, as a resumed run does, until it is killed. The state after a pass says
// how many windows went into it.
int write_passes(const std::filesystem::path& file, std::int64_t run) {
  Database db = Database::open(file);
  for (auto first = static_cast<int>(db.stored_windows(run));; first += kPass)
    db.store_pass(run, sample_windows(kSchemes, first, kPass),
                  sample_states(kSchemes, std::string(2000, 's') + std::to_string(first + kPass)), {});
}

TEST(Killed, InTheMiddleOfPassesLeavesWholePassesAndTheirState) {
  const auto file = fresh_dir("store_killed") / "r.db";
  const std::int64_t run = Database::open(file).start_run(filled<RunRecord>(1), sample_schemes(kSchemes));
  SplitMix64 random(1);
  std::int64_t before = 0;
  for (int round = 0; round < 40; ++round) {
    const int patience = before == 0 ? 5000 * round : 0;  // a slow machine must come to its first pass too
    const auto delay = static_cast<unsigned>(random.uniform() * 40000) + static_cast<unsigned>(patience);
    ASSERT_TRUE(kill_after(delay, [&] { return write_passes(file, run); })) << "the writer stopped by itself";
    // A reader that may not write comes first: it meets the log as the dead writer left it.
    const Table counts =
        query_database(file, "SELECT position, count(*), max(window) FROM window GROUP BY position");
    Database db = Database::open(file);
    const std::int64_t stored = db.stored_windows(run);
    ASSERT_EQ(stored % kPass, 0);
    ASSERT_GE(stored, before) << "a committed pass is gone";
    before = stored;
    if (stored == 0) continue;
    ASSERT_EQ(counts.rows.size(), static_cast<std::size_t>(kSchemes));
    for (const auto& row : counts.rows) {
      ASSERT_EQ(std::get<std::int64_t>(row[1]), stored);
      ASSERT_EQ(std::get<std::int64_t>(row[2]), stored - 1);
    }
    const auto states = db.states(run);
    ASSERT_EQ(states.size(), static_cast<std::size_t>(kSchemes));
    for (const StateRecord& state : states)
      ASSERT_EQ(state.state, std::string(2000, 's') + std::to_string(stored));
  }
  EXPECT_GT(before, 0) << "no writer ever came to a pass: the delays prove nothing";
  SQLite::Database check(file.string(), SQLite::OPEN_READONLY);
  EXPECT_EQ(check.execAndGet("PRAGMA integrity_check").getString(), "ok");
}

TEST(Killed, WhileTheFileIsMadeLeavesAFileThatOpens) {
  const auto folder = fresh_dir("store_killed_early");
  SplitMix64 random(2);
  int made = 0;
  for (int round = 0; round < 30; ++round) {
    const auto file = folder / (std::to_string(round) + ".db");
    const auto delay = static_cast<unsigned>(random.uniform() * 20000);
    kill_after(delay, [&] {
      Database::open(file);
      ::pause();
      return 0;
    });
    made += std::filesystem::exists(file);
    Database db = Database::open(file);
    EXPECT_EQ(db.start_run(filled<RunRecord>(1), sample_schemes(1)), 1);
  }
  EXPECT_GT(made, 0);
}

TEST(Concurrent, AReaderSeesWholePassesWhileAnotherProcessWrites) {
  const auto file = fresh_dir("store_reader") / "r.db";
  const std::int64_t run = Database::open(file).start_run(filled<RunRecord>(1), sample_schemes(kSchemes));
  const pid_t writer = in_child([&] { return write_passes(file, run); });
  std::int64_t last = 0;
  for (int i = 0; i < 1000 && last < 10 * kPass; ++i) {
    const Table table = query_database(file, "SELECT count(*) FROM window");
    const auto count = std::get<std::int64_t>(table.rows[0][0]);
    EXPECT_EQ(count % (kSchemes * kPass), 0);
    last = count / kSchemes;
    ::usleep(1000);
  }
  ::kill(writer, SIGKILL);
  exit_status(writer);
  EXPECT_GE(last, 10 * kPass) << "the reader never saw the writer move";
}

TEST(Concurrent, ManyProcessesMakeAndFillOneDatabase) {
  const auto file = fresh_dir("store_many") / "r.db";
  constexpr int kProcesses = 6;
  std::vector<pid_t> children;
  children.reserve(kProcesses);
  for (int i = 0; i < kProcesses; ++i)
    children.push_back(in_child([&] {
      Database db = Database::open(file);
      for (int n = 0; n < 3; ++n) {
        const auto run = db.start_run(filled<RunRecord>(i), sample_schemes(2));
        db.store_pass(run, sample_windows(2, 0, 2), {}, {});
        db.finish_run(run, "", {}, {});
      }
      return 0;
    }));
  for (const pid_t child : children) EXPECT_EQ(exit_status(child), 0);
  const Table table = query_database(file, "SELECT count(*) FROM runs WHERE status = 'complete'");
  EXPECT_EQ(std::get<std::int64_t>(table.rows[0][0]), kProcesses * 3);
}

TEST(Concurrent, ADatabaseHeldByAWriterIsOneLineAfterTheTimeout) {
  const auto file = fresh_dir("store_held") / "r.db";
  Database db = Database::open(file);
  SQLite::Database holder(file.string(), SQLite::OPEN_READWRITE);
  holder.exec("BEGIN IMMEDIATE");
  EXPECT_EQ(query_database(file, "SELECT count(*) FROM runs").rows.size(), 1u) << "readers do not wait";
  EXPECT_EQ(Database::open(file).stored_windows(1), 0) << "opening does not wait";
  try {
    db.start_run(filled<RunRecord>(1), sample_schemes(1));
    FAIL() << "wrote in spite of the lock";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::failed);
    EXPECT_EQ(std::string(error.what()),
              "results database: " + file.string() +
                  ": in use by another process (expected its lock within 5 s, found it still held)");
  }
  holder.exec("ROLLBACK");
  EXPECT_EQ(db.start_run(filled<RunRecord>(1), sample_schemes(1)), 1) << "free again, usable again";
}

// Permissions do not bind root: the child becomes nobody first.
int as_nobody(const std::function<void()>& work, std::string_view says, ErrorKind kind) {
  return exit_status(in_child([&] {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) return 98;
    try {
      work();
    } catch (const Error& error) {
      if (says.empty() || error.kind() != kind ||
          std::string_view(error.what()).find(says) == std::string_view::npos) {
        std::fputs((std::string(error.what()) + "\n").c_str(), stderr);
        return 1;
      }
      return 0;
    }
    return says.empty() ? 0 : 2;
  }));
}

TEST(ReadOnlyFolder, CanBeQueriedButNotWritten) {
  const auto folder = fresh_dir("store_readonly");
  const auto file = folder / "r%41 #?.db";
  Database::open(file).start_run(filled<RunRecord>(1), sample_schemes(1));
  ::chmod(file.c_str(), 0444);
  ::chmod(folder.c_str(), 0555);
  EXPECT_EQ(as_nobody([&] { query_database(file, "SELECT * FROM runs"); }, "", ErrorKind::failed), 0);
  EXPECT_EQ(as_nobody([&] { Database::open(file); }, "not writable", ErrorKind::failed), 0);
  EXPECT_EQ(as_nobody([&] { Database::open(folder / "new.db"); }, "unable to open", ErrorKind::failed), 0);
  ::chmod(folder.c_str(), 0755);
}

}  // namespace
}  // namespace quantmap
