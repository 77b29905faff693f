// kill -9 at random moments, a bound on memory, more threads: the same rows, to the last bit.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "core/random.hpp"
#include "support/paths.hpp"
#include "support/run.hpp"

namespace quantmap {
namespace {

using testing::demo_dir;
using testing::fresh_dir;
using testing::run_and_signal;
using testing::run_quantmap;
using testing::RunResult;
using Json = nlohmann::json;

std::vector<std::string> sweep(const std::string& db, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"eval",      demo_dir().string(),
                                        "--text",    (demo_dir() / "text.txt").string(),
                                        "--ctx",     "256",
                                        "--db",      db,
                                        "--windows", "24",
                                        "--quiet",   "--format",
                                        "json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  for (const char* word : {"--schemes", "W8A8", "NVFP4", "W4A16+KVFP8"}) arguments.emplace_back(word);
  return arguments;
}

// Rows without what a clock decides.
Json rows_of(const RunResult& result) {
  EXPECT_EQ(result.status, 0) << result.err;
  Json rows = Json::parse(result.out)["rows"];
  for (Json& row : rows) row.erase("seconds");
  return rows;
}

TEST(Interrupted, FiveKillsAtRandomMomentsChangeNoBit) {
  const auto dir = fresh_dir("kill");
  const std::vector<std::string> small = {"--memory", "24M"};
  const auto begin = std::chrono::steady_clock::now();
  const Json unbroken = rows_of(run_quantmap(sweep((dir / "whole.db").string(), small)));
  const auto whole =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  const std::string db = (dir / "killed.db").string();
  std::vector<std::string> resumed = small;
  resumed.emplace_back("--resume");
  SplitMix64 random(static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
  int kills = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    // Anywhere from start-up to a third of the whole, so that five kills fall on unfinished runs.
    const auto delay =
        std::chrono::milliseconds(1 + random.next() % static_cast<std::uint64_t>(whole.count() / 3 + 1));
    kills += run_and_signal(sweep(db, resumed), delay, SIGKILL).by_signal ? 1 : 0;
    if (std::filesystem::exists(db)) {
      EXPECT_EQ(run_quantmap({"query", "runs", "--db", db}).status, 0);  // the database always opens
    }
  }
  EXPECT_GE(kills, 3);
  EXPECT_EQ(rows_of(run_quantmap(sweep(db, resumed))), unbroken);
}

TEST(Interrupted, MemoryAndThreadsChangeNoBitAndTheBoundHolds) {
  const auto dir = fresh_dir("memory");
  const Json wide =
      rows_of(run_quantmap(sweep((dir / "a.db").string(), {"--memory", "2G", "--threads", "2"})));
  constexpr std::int64_t kBound = 24;  // MiB; the state of all 24 windows takes far more
  const Json narrow =
      rows_of(run_quantmap(sweep((dir / "b.db").string(), {"--memory", "24M", "--threads", "1"})));
  EXPECT_EQ(narrow, wide);
  const RunResult plan = run_quantmap({"query", "--db", (dir / "b.db").string(), "--format", "json", "--sql",
                                       "SELECT windows, plan_windows FROM runs"});
  const Json stored = Json::parse(plan.out)[0];
  EXPECT_LT(stored["plan_windows"].get<int>(), stored["windows"].get<int>());

  // Peak memory: the bound, the mapped file, and what the program is without a sweep.
  const auto peak_of = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> timed = {"/usr/bin/env", "python3", "-c",
                                      "import resource,subprocess,sys\n"
                                      "subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,check=True)\n"
                                      "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                                      QUANTMAP_BINARY};
    timed.insert(timed.end(), arguments.begin(), arguments.end());
    const RunResult result = testing::run(timed);
    return result.status == 0 ? std::stoll(result.out) / 1024 : -1;
  };
  const long long bare = peak_of({"formats"});
  if (bare < 0) GTEST_SKIP() << "needs python3";
  const long long peak = peak_of(sweep((dir / "c.db").string(), {"--memory", "24M", "--threads", "1"}));
  const auto mapped =
      static_cast<long long>(std::filesystem::file_size(demo_dir() / "model.safetensors") >> 20);
  std::printf("peak %lld MiB: bound %lld, mapped file %lld, program alone %lld\n", peak,
              static_cast<long long>(kBound), mapped, bare);
  // Tokenizer, compiled kernels and the database's cache are the rest.
  EXPECT_LE(peak, kBound + mapped + bare + 40);
}

}  // namespace
}  // namespace quantmap
