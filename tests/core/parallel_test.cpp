#include "core/parallel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

#include "core/random.hpp"

namespace quantmap {
namespace {

constexpr int kThreadCounts[] = {1, 2, 3, 8};

// Restores the default number of threads after each test.
class Parallel : public ::testing::Test {
 protected:
  void TearDown() override { set_thread_count(0); }
};

TEST_F(Parallel, EveryIndexIsRunOnceByAWorkerThatExists) {
  for (const int threads : kThreadCounts) {
    set_thread_count(threads);
    EXPECT_EQ(thread_count(), threads);
    for (const std::int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
      std::atomic<int> strangers{0};
      parallel_for(count, [&](std::int64_t index, int worker) {
        ++runs.at(static_cast<std::size_t>(index));
        if (worker < 0 || worker >= threads) ++strangers;
      });
      for (const auto& run : runs) EXPECT_EQ(run, 1) << threads << " threads, " << count << " tasks";
      EXPECT_EQ(strangers, 0);
    }
  }
}

TEST_F(Parallel, CountsBelowOneRunNothing) {
  parallel_for(-5, [](std::int64_t, int) { FAIL(); });
}

TEST_F(Parallel, IndicesAreHandedOutInOrder) {
  for (const int threads : kThreadCounts) {
    set_thread_count(threads);
    std::vector<std::vector<std::int64_t>> seen(static_cast<std::size_t>(threads));
    parallel_for(500, [&](std::int64_t index, int worker) {
      seen[static_cast<std::size_t>(worker)].push_back(index);
    });
    for (const auto& indices : seen) EXPECT_TRUE(std::is_sorted(indices.begin(), indices.end()));
  }
}

TEST_F(Parallel, ResultsDoNotDependOnTheNumberOfThreads) {
  const auto run = [] {
    std::vector<float> out(64 * 1001);
    parallel_for(64, [&](std::int64_t index, int) {
      fill_gaussian(static_cast<std::uint64_t>(index), out.data() + index * 1001, 1001);
    });
    return out;
  };
  set_thread_count(1);
  const std::vector<float> one = run();
  for (const int threads : kThreadCounts) {
    set_thread_count(threads);
    EXPECT_EQ(run(), one) << threads;
  }
}

TEST_F(Parallel, AnExceptionComesBackOnceAndThePoolGoesOn) {
  for (const int threads : kThreadCounts) {
    set_thread_count(threads);
    for (const std::int64_t bad : {0, 1, 99}) {
      std::atomic<int> runs{0};
      EXPECT_THROW(parallel_for(100,
                                [&](std::int64_t index, int) {
                                  ++runs;
                                  if (index == bad) throw std::runtime_error("task");
                                }),
                   std::runtime_error);
      EXPECT_LE(runs, 100);
      runs = 0;
      parallel_for(100, [&](std::int64_t, int) { ++runs; });
      EXPECT_EQ(runs, 100) << "after an exception";
    }
    EXPECT_THROW(parallel_for(50, [](std::int64_t, int) { throw std::logic_error("every task"); }),
                 std::logic_error);
  }
}

TEST_F(Parallel, NestedCallsRunSeriallyOnTheirWorker) {
  set_thread_count(4);
  std::atomic<int> inner_runs{0}, elsewhere{0};
  parallel_for(20, [&](std::int64_t, int worker) {
    std::int64_t expected = 0;
    parallel_for(10, [&](std::int64_t index, int inner_worker) {
      ++inner_runs;
      if (inner_worker != worker || index != expected++) ++elsewhere;
    });
  });
  EXPECT_EQ(inner_runs, 200);
  EXPECT_EQ(elsewhere, 0);
}

TEST_F(Parallel, AnExceptionOfANestedCallComesBackToo) {
  set_thread_count(3);
  EXPECT_THROW(parallel_for(4,
                            [](std::int64_t, int) {
                              parallel_for(4, [](std::int64_t index, int) {
                                if (index == 2) throw std::runtime_error("inner");
                              });
                            }),
               std::runtime_error);
}

TEST_F(Parallel, SmallJobsOneAfterAnother) {  // each wakes the pool: a lost wake-up would hang here
  set_thread_count(4);
  std::int64_t total = 0;
  for (int round = 0; round < 2000; ++round) {
    std::atomic<std::int64_t> sum{0};
    parallel_for(5, [&](std::int64_t index, int) { sum += index; });
    total += sum;
  }
  EXPECT_EQ(total, 20000);
}

TEST_F(Parallel, ZeroThreadsMeansTheProcessorsOfThisProcess) {
  set_thread_count(0);
  EXPECT_GE(thread_count(), 1);
  set_thread_count(-3);
  EXPECT_GE(thread_count(), 1);
}

}  // namespace
}  // namespace quantmap
