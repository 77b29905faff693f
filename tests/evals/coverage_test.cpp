// Simulated data with known truth: intervals hold it, and tests err, as often as they say. Each case draws
// 4,000 data sets, so a rate of 0.95 is known to 0.0034 (one standard error); ±0.02 is what is promised.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random.hpp"
#include "evals/bootstrap.hpp"
#include "evals/holm.hpp"
#include "evals/paired_difference.hpp"
#include "evals/paired_items.hpp"

namespace quantmap {
namespace {

constexpr int kDataSets = 4000;
constexpr double kPromised = 0.02;

class Random {
 public:
  explicit Random(std::uint64_t seed) : bits_(seed) {}
  double uniform() { return bits_.uniform(); }
  double normal() { return std::sqrt(-2 * std::log(bits_.uniform())) * std::cos(2 * M_PI * bits_.uniform()); }
  double exponential() { return -std::log(bits_.uniform()); }
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(bits_.next() % static_cast<std::uint64_t>(limit));
  }

 private:
  SplitMix64 bits_;
};

struct Pair {
  std::vector<Cluster> a, b;
};

// Windows of `low` to `high` tokens. Windows differ in how hard they are (both schemes alike) and in how much
// the schemes differ there, so tokens of one window depend on each other. The true difference of means is
// `truth`, whatever a window's length.
Pair simulate(Random& random, int windows, std::int64_t low, std::int64_t high, double truth) {
  Pair pair;
  for (int w = 0; w < windows; ++w) {
    const std::int64_t tokens = low + random.below(high - low + 1);
    const double hardness = 3 * random.exponential();
    const double shift = truth + 0.05 * random.normal();
    Cluster a{0, static_cast<double>(tokens)}, b = a;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const double shared = hardness * random.exponential();
      b.sum += shared;
      a.sum += shared + shift + 0.3 * random.normal();
    }
    pair.a.push_back(a);
    pair.b.push_back(b);
  }
  return pair;
}

struct CoverageCase {
  const char* reason;
  int windows;
  std::int64_t low, high;  // tokens of a window
  double truth;
};
constexpr CoverageCase kCoverage[] = {
    {"few windows: the t quantile, not the normal one", 5, 40, 40, 0.1},
    {"as many as the demo has", 79, 20, 20, 0.0},
    {"windows of unlike length", 30, 5, 60, -0.05},
};

double share(int count) { return static_cast<double>(count) / kDataSets; }

bool holds(const Interval& interval, double truth) {
  return interval.low && *interval.low <= truth && truth <= *interval.high;
}

TEST(Coverage, PairedIntervalsHoldTheTruthAsOftenAsTheySay) {
  for (const CoverageCase& c : kCoverage) {
    Random random(101);
    int held = 0, alone = 0;
    for (int i = 0; i < kDataSets; ++i) {
      const Pair pair = simulate(random, c.windows, c.low, c.high, c.truth);
      held += holds(paired_difference(pair.a, pair.b).interval, c.truth);
      // What the same windows' own errors would give, were they taken for independent.
      alone += holds(unpaired_difference(pair.a, pair.b).interval, c.truth);
    }
    EXPECT_NEAR(share(held), kConfidence, kPromised) << c.reason;
    EXPECT_GT(share(alone), 0.995) << c.reason << ": without pairing the interval is far too wide";
  }
}

TEST(Coverage, UnpairedIntervalsOfIndependentTextsHoldTheTruth) {
  for (const CoverageCase& c : kCoverage) {
    if (c.windows < 20) continue;  // hardness is skewed: a mean of 5 such windows is not near normal
    Random random(102);
    int held = 0;
    for (int i = 0; i < kDataSets; ++i) {
      const Pair one = simulate(random, c.windows, c.low, c.high, c.truth);
      const Pair other = simulate(random, 2 * c.windows, c.low, c.high, c.truth);
      held += holds(unpaired_difference(one.a, other.b).interval, c.truth);
    }
    EXPECT_NEAR(share(held), kConfidence, kPromised) << c.reason;
  }
}

// KL of a scheme: one-sided and skewed. 79 windows of the demo's kind.
TEST(Coverage, IntervalsOfASkewedMeanHoldTheTruth) {
  Random random(103);
  int analytic = 0, resampled = 0;
  for (int i = 0; i < kDataSets; ++i) {
    std::vector<Cluster> windows;
    for (int w = 0; w < 79; ++w) {
      const double level = random.exponential() + random.exponential() + random.exponential();  // mean 3
      Cluster window{0, 10};
      for (int t = 0; t < 10; ++t) window.sum += level * random.exponential();
      windows.push_back(window);
    }
    Cluster all;
    for (const Cluster& window : windows) all.sum += window.sum, all.count += window.count;
    analytic += holds(t_interval(all.sum / all.count, clustered_stderr(windows), 78), 3);
    if (i % 4 == 0)
      resampled += holds(percentile_interval(bootstrap_means(
                             windows, {.seed = static_cast<std::uint64_t>(i), .resamples = 400})),
                         3);
  }
  EXPECT_NEAR(share(analytic), kConfidence, kPromised);
  EXPECT_NEAR(4 * share(resampled), kConfidence, kPromised) << "1,000 data sets";
}

TEST(Coverage, AccuracyIntervalsHoldTheTruth) {
  Random random(104);
  int held = 0;
  for (int i = 0; i < kDataSets; ++i) {
    std::vector<std::uint8_t> a, b;
    for (int item = 0; item < 200; ++item) {
      const bool right = random.uniform() < 0.6;
      b.push_back(right);
      // A tenth of the right ones lost, a twentieth of the wrong ones won: 0.6 * 0.9 + 0.4 * 0.05 = 0.56.
      a.push_back(right ? random.uniform() < 0.9 : random.uniform() < 0.05);
    }
    held += holds(accuracy_difference(flips(a, b)).interval, -0.04);
  }
  EXPECT_NEAR(share(held), kConfidence, kPromised);
}

// Exact: never above its level; its steps are large where few items flip, so it lies below.
TEST(Coverage, McNemarErrsAtMostAsOftenAsItSays) {
  for (const double flip : {0.05, 0.2, 0.6}) {
    Random random(105);
    int called = 0;
    for (int i = 0; i < kDataSets; ++i) {
      std::int64_t only_a = 0, only_b = 0;
      for (int item = 0; item < 300; ++item)
        if (random.uniform() < flip) ++(random.uniform() < 0.5 ? only_a : only_b);
      called += mcnemar(only_a, only_b) < 1 - kConfidence;
    }
    EXPECT_LE(share(called), 1 - kConfidence + 0.01) << flip;
    EXPECT_GE(share(called), 0.01) << flip << ": it does find chance's share";
  }
}

// Ten schemes that cost the same: 45 pairs. Unadjusted, one in most sweeps would look different.
TEST(Coverage, HolmKeepsAWholeSweepAtItsLevel) {
  constexpr int kSchemes = 10, kSweeps = 1000;
  Random random(106);
  int adjusted = 0, plain = 0;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    std::vector<std::vector<Cluster>> schemes(kSchemes);
    for (int w = 0; w < 30; ++w) {
      const double hardness = random.exponential();
      for (auto& scheme : schemes) scheme.push_back({hardness + random.normal(), 1});
    }
    std::vector<Number> p;
    for (std::size_t a = 0; a < kSchemes; ++a)
      for (std::size_t b = 0; b < a; ++b) p.push_back(paired_difference(schemes[a], schemes[b]).p);
    const auto small = [](const Number& one) { return *one < 1 - kConfidence; };
    const auto tests = holm(p);
    plain += std::any_of(p.begin(), p.end(), small);
    adjusted += std::any_of(tests.begin(), tests.end(), [&](const HolmTest& test) { return small(test.p); });
  }
  EXPECT_LE(static_cast<double>(adjusted) / kSweeps, 1 - kConfidence + kPromised);
  EXPECT_GT(static_cast<double>(plain) / kSweeps, 0.4);
}

// Half the sweeps that were told "N more windows" settle with N more.
TEST(Coverage, TheWindowsAskedForSettleAboutHalfTheTime) {
  Random random(107);
  int settled = 0, asked = 0;
  for (int i = 0; i < kDataSets; ++i) {
    // The truth is known here, so the forecast is made from it: 20 windows, mean 0.4, spread 1.
    Difference d;
    d.difference = 0.4;
    d.stderr_of_difference = 1 / std::sqrt(20);
    d.windows = 20;
    const auto windows = 20 + static_cast<int>(*windows_to_settle(d));
    std::vector<Cluster> a, b(static_cast<std::size_t>(windows), Cluster{0, 1});
    for (int w = 0; w < windows; ++w) a.push_back({0.4 + random.normal(), 1});
    const Difference found = paired_difference(a, b);
    ++asked;
    settled += verdict_of(found, found.p) == Verdict::higher;
  }
  EXPECT_NEAR(static_cast<double>(settled) / asked, 0.5, 0.05);
}

}  // namespace
}  // namespace quantmap
