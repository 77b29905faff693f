// Student's t, paired differences, McNemar, Holm and the bootstrap against SciPy and statsmodels
// (tests/golden/evals/make_statistics.py), and by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/random.hpp"
#include "evals/bootstrap.hpp"
#include "evals/holm.hpp"
#include "evals/paired_difference.hpp"
#include "evals/paired_items.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

using Json = nlohmann::json;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const Json& golden() {
  static const Json values =
      Json::parse(std::ifstream(testing::source_dir() / "tests/golden/evals/statistics.json"));
  return values;
}

std::vector<Cluster> windows_of(const Json& values) {
  std::vector<Cluster> windows;
  for (const Json& window : values) windows.push_back({window[0], window[1]});
  return windows;
}

void expect_near(const Number& found, double expected, double relative, const std::string& what) {
  ASSERT_TRUE(found.has_value()) << what;
  EXPECT_NEAR(*found, expected, relative * std::max(std::abs(expected), 1e-300)) << what;
}

TEST(StudentT, QuantilesAndTailsAreSciPys) {
  for (const Json& row : golden()["student_t"]["quantiles"])
    EXPECT_NEAR(student_t_quantile(row["p"], row["degrees"]), row["quantile"].get<double>(),
                1e-12 * (1 + std::abs(row["quantile"].get<double>())))
        << row;
  for (const Json& row : golden()["student_t"]["tails"])
    EXPECT_NEAR(student_t_two_sided(row["t"], row["degrees"]), row["two_sided"].get<double>(),
                1e-12 * row["two_sided"].get<double>())
        << row;
}

TEST(StudentT, OfAnInfiniteDistanceLeavesNoChance) {
  EXPECT_EQ(student_t_two_sided(INFINITY, 5), 0);
  EXPECT_EQ(student_t_two_sided(-INFINITY, 5), 0);
}

TEST(StudentT, IntervalNeedsAnErrorAndADegree) {
  EXPECT_FALSE(t_interval(1.0, std::nullopt, 5).low);
  EXPECT_FALSE(t_interval(std::nullopt, 1.0, 5).high);
  EXPECT_FALSE(t_interval(1.0, 1.0, 0).low);
  const Interval one = t_interval(1.0, 0.5, 1);  // 12.706 is the quantile of one degree
  expect_near(one.low, 1 - 0.5 * 12.706204736174694, 1e-12, "low");
  expect_near(one.high, 1 + 0.5 * 12.706204736174694, 1e-12, "high");
}

TEST(PairedDifference, IsTheClusteredRegressionOnAConstant) {
  for (const Json& row : golden()["paired"]) {
    const Difference d = paired_difference(windows_of(row["a"]), windows_of(row["b"]));
    const std::string what = std::to_string(d.windows) + " windows";
    EXPECT_EQ(d.windows, static_cast<std::int64_t>(row["a"].size()));
    expect_near(d.difference, row["difference"], 1e-9, what);
    expect_near(d.stderr_of_difference, row["stderr"], 1e-9, what);
    expect_near(d.degrees, row["degrees"], 0, what);
    expect_near(d.interval.low, row["low"], 1e-9, what);
    expect_near(d.interval.high, row["high"], 1e-9, what);
    expect_near(d.p, row["p"], 1e-7, what);
    expect_near(windows_to_settle(d), row["more_windows"], 0, what);
  }
}

TEST(PairedDifference, OfWindowsOfOneLengthIsTheTTestOnTheirMeans) {
  for (const Json& row : golden()["equal_windows"]) {
    const auto a = windows_of(row["a"]), b = windows_of(row["b"]);
    const std::pair<const char*, Difference> cases[] = {{"paired", paired_difference(a, b)},
                                                        {"unpaired", unpaired_difference(a, b)}};
    for (const auto& [name, d] : cases) {
      expect_near(d.difference, row[name]["difference"], 1e-9, name);
      expect_near(d.degrees, row[name]["degrees"], 1e-9, name);
      expect_near(d.p, row[name]["p"], 1e-7, name);
      expect_near(d.interval.low, row[name]["low"], 1e-9, name);
      expect_near(d.interval.high, row[name]["high"], 1e-9, name);
    }
  }
}

TEST(PairedDifference, TurnsItsSignWithTheOrder) {
  const Json& row = golden()["paired"][3];
  const auto a = windows_of(row["a"]), b = windows_of(row["b"]);
  const Difference ab = paired_difference(a, b), ba = paired_difference(b, a);
  EXPECT_EQ(*ab.difference, -*ba.difference);
  EXPECT_EQ(ab.stderr_of_difference, ba.stderr_of_difference);
  EXPECT_EQ(ab.p, ba.p);
  EXPECT_EQ(*ab.interval.low, -*ba.interval.high);
}

TEST(PairedDifference, WindowsWithoutTokensAreNone) {
  const std::vector<Cluster> a = {{3, 2}, {0, 0}, {5, 2}}, b = {{1, 2}, {0, 0}, {1, 2}};
  const Difference d = paired_difference(a, b);
  EXPECT_EQ(d.windows, 2);
  expect_near(d.difference, 1.5, 0, "mean");
  expect_near(d.degrees, 1, 0, "degrees");
}

struct VerdictCase {
  const char* reason;
  std::vector<Cluster> a, b;
  Verdict verdict;
};
TEST(PairedDifference, SaysWhatTheDataSupport) {
  const VerdictCase cases[] = {
      {"nothing", {}, {}, Verdict::undefined},
      {"one window has no spread", {{1, 1}}, {{2, 1}}, Verdict::undefined},
      {"not a number", {{kNan, 1}, {1, 1}}, {{1, 1}, {1, 1}}, Verdict::undefined},
      {"infinite", {{INFINITY, 1}, {1, 1}}, {{1, 1}, {1, 1}}, Verdict::undefined},
      {"the same in every window", {{1, 1}, {2, 1}}, {{1, 1}, {2, 1}}, Verdict::equal},
      {"apart by as much in every window", {{2, 1}, {3, 1}}, {{1, 1}, {2, 1}}, Verdict::higher},
      {"below, spread far smaller", {{1, 1}, {2, 1}, {3, 1}}, {{2, 1}, {3, 1}, {4.01, 1}}, Verdict::lower},
      {"no mean difference, but a spread", {{1, 1}, {2, 1}}, {{2, 1}, {1, 1}}, Verdict::not_distinguishable},
      // t = 2 with 2 degrees: p = 0.18.
      {"two errors, few windows",
       {{1, 1}, {2, 1}, {3, 1}},
       {{0, 1}, {0, 1}, {0, 1}},
       Verdict::not_distinguishable},
  };
  for (const VerdictCase& c : cases) {
    const Difference d = paired_difference(c.a, c.b);
    EXPECT_EQ(verdict_name(verdict_of(d, d.p)), verdict_name(c.verdict)) << c.reason;
  }
}

TEST(PairedDifference, OfUnlikeWindowsIsRefused) {
  const std::vector<Cluster> one = {{1, 1}}, two = {{1, 1}, {1, 1}}, longer = {{1, 2}};
  EXPECT_THROW(paired_difference(one, two), Error);
  EXPECT_THROW(paired_difference(one, longer), Error);
}

TEST(UnpairedDifference, OfSchemesWithoutSpreadIsTheirDistance) {
  const std::vector<Cluster> a = {{2, 1}, {4, 2}}, b = {{1, 1}, {1, 1}, {1, 1}};
  const Difference d = unpaired_difference(a, b);
  expect_near(d.difference, 1, 0, "means 2 and 1");
  expect_near(d.p, 0, 0, "p");
  EXPECT_FALSE(unpaired_difference(a, {}).difference);
}

TEST(WindowsToSettle, ReachesTheLeastNumberThatDoes) {
  for (const double distance : {0.5, 0.1, 0.03, 0.004}) {
    Difference d;
    d.difference = distance;
    d.stderr_of_difference = 0.1;
    d.windows = 25;
    d.degrees = 24;
    for (const double confidence : {0.95, 0.9987}) {
      const Number more = windows_to_settle(d, confidence);
      ASSERT_TRUE(more);
      const auto excludes_zero = [&](double windows) {
        return student_t_quantile((1 + confidence) / 2, windows - 1) * 0.1 * std::sqrt(25 / windows) <
               distance;
      };
      EXPECT_TRUE(excludes_zero(25 + *more)) << distance;
      if (*more > 0) {
        EXPECT_FALSE(excludes_zero(25 + *more - 1)) << distance;
      }
    }
  }
}

TEST(WindowsToSettle, IsUndefinedWhereNothingWould) {
  Difference d;
  d.windows = 25;
  d.stderr_of_difference = 0.1;
  EXPECT_FALSE(windows_to_settle(d)) << "no difference measured";
  d.difference = 0;
  EXPECT_FALSE(windows_to_settle(d)) << "a difference of 0 stays in every interval";
  d.difference = 1e-9;
  EXPECT_FALSE(windows_to_settle(d)) << "more windows than anyone has";
}

TEST(McNemar, IsStatsmodelsExactTest) {
  for (const Json& row : golden()["mcnemar"]) {
    EXPECT_NEAR(mcnemar(row["only_a"], row["only_b"]), row["p"].get<double>(), 1e-11 * row["p"].get<double>())
        << row;
    EXPECT_EQ(mcnemar(row["only_a"], row["only_b"]), mcnemar(row["only_b"], row["only_a"]));
  }
}

TEST(Flips, CountEveryItemOnce) {
  const std::vector<std::uint8_t> a = {1, 1, 1, 0, 0, 0, 0}, b = {1, 0, 0, 1, 0, 0, 0};
  const Flips f = flips(a, b);
  EXPECT_EQ(f.both, 1);
  EXPECT_EQ(f.only_a, 2);
  EXPECT_EQ(f.only_b, 1);
  EXPECT_EQ(f.neither, 3);
  EXPECT_EQ(f.items(), 7);
  EXPECT_EQ(f.flipped(), 3);
  EXPECT_THROW(flips(a, {}), Error);
}

// The paired error of d in {-1, 0, 1} is that of a paired difference over windows of one item.
TEST(AccuracyDifference, HasTheErrorOfPairedWindowsOfOneItem) {
  SplitMix64 random(11);
  std::vector<std::uint8_t> a, b;
  std::vector<Cluster> windows_a, windows_b;
  for (int i = 0; i < 300; ++i) {
    a.push_back(random.uniform() < 0.6);
    b.push_back(random.uniform() < 0.8 ? a.back() : 1 - a.back());
    windows_a.push_back({static_cast<double>(a.back()), 1});
    windows_b.push_back({static_cast<double>(b.back()), 1});
  }
  const AccuracyDifference found = accuracy_difference(flips(a, b));
  const Difference d = paired_difference(windows_a, windows_b);
  expect_near(found.difference, *d.difference, 1e-12, "difference");
  expect_near(found.stderr_of_difference, *d.stderr_of_difference, 1e-12, "stderr");
  expect_near(found.interval.low, *d.interval.low, 1e-12, "low");
  const Flips f = flips(a, b);
  EXPECT_EQ(*found.p, mcnemar(f.only_a, f.only_b));
}

TEST(AccuracyDifference, OfFewItemsIsUndefinedWhereItMustBe) {
  EXPECT_FALSE(accuracy_difference({}).difference);
  const AccuracyDifference one = accuracy_difference({.only_a = 1});
  expect_near(one.difference, 1, 0, "one item");
  EXPECT_FALSE(one.stderr_of_difference);
}

TEST(Holm, IsStatsmodelsStepDown) {
  for (const Json& row : golden()["holm"]) {
    std::vector<Number> p;
    for (const Json& value : row["p"]) p.emplace_back(value.get<double>());
    const std::vector<HolmTest> tests = holm(p);
    ASSERT_EQ(tests.size(), row["adjusted"].size());
    for (std::size_t i = 0; i < tests.size(); ++i)
      expect_near(tests[i].p, row["adjusted"][i], 1e-12, row.dump());
  }
}

TEST(Holm, LeavesOutWhatIsUndefined) {
  const std::vector<Number> p = {0.01, std::nullopt, 0.04};
  const std::vector<HolmTest> tests = holm(p);
  expect_near(tests[0].p, 0.02, 1e-15, "of two, not of three");
  EXPECT_EQ(tests[0].tests_left, 2);
  EXPECT_FALSE(tests[1].p);
  expect_near(tests[2].p, 0.04, 1e-15, "the last");
  EXPECT_TRUE(holm({}).empty());
}

TEST(Bootstrap, PercentileIntervalIsSciPys) {
  for (const Json& row : golden()["bootstrap"]) {
    std::vector<Cluster> windows;
    for (const Json& value : row["windows"]) windows.push_back({value.get<double>(), 1});
    const Interval found = percentile_interval(bootstrap_means(windows, {.seed = 3, .resamples = 200'000}));
    // Both ends are quantiles of 200,000 draws: their errors are sqrt(.025 .975 / 200000) / density(1.96),
    // 0.006 standard errors, each.
    const double bound = 4 * std::sqrt(2.0) * 0.006 * row["stderr"].get<double>();
    ASSERT_TRUE(found.low && found.high);
    EXPECT_NEAR(*found.low, row["low"].get<double>(), bound);
    EXPECT_NEAR(*found.high, row["high"].get<double>(), bound);
  }
}

TEST(Bootstrap, AgreesWithTheAnalyticIntervalWhereWindowsAreNearNormal) {
  const Json& row = golden()["paired"][3];
  const auto a = windows_of(row["a"]), b = windows_of(row["b"]);
  std::vector<Cluster> difference;
  for (std::size_t w = 0; w < a.size(); ++w) difference.push_back({a[w].sum - b[w].sum, a[w].count});
  const Interval analytic = paired_difference(a, b).interval;
  const Interval resampled = percentile_interval(bootstrap_means(difference, {.resamples = 20'000}));
  const double width = *analytic.high - *analytic.low;
  EXPECT_NEAR(*resampled.low, *analytic.low, 0.08 * width);
  EXPECT_NEAR(*resampled.high, *analytic.high, 0.08 * width);
}

TEST(Bootstrap, DrawsTheSameWindowsOfEveryScheme) {
  const Json& row = golden()["paired"][2];
  const auto a = windows_of(row["a"]), b = windows_of(row["b"]);
  std::vector<Cluster> difference;
  for (std::size_t w = 0; w < a.size(); ++w) difference.push_back({a[w].sum - b[w].sum, a[w].count});
  const BootstrapOptions options{.seed = 5, .resamples = 100, .block = 3};
  const auto of_a = bootstrap_means(a, options), of_b = bootstrap_means(b, options),
             paired = bootstrap_means(difference, options);
  for (std::size_t i = 0; i < paired.size(); ++i) EXPECT_NEAR(of_a[i] - of_b[i], paired[i], 1e-12);
  EXPECT_NE(bootstrap_means(a, {.seed = 6, .resamples = 100, .block = 3}), of_a) << "the seed decides";
  EXPECT_EQ(bootstrap_means(a, options), of_a);
}

TEST(Bootstrap, OneBlockOfAllWindowsIsTheWholeEveryTime) {
  const std::vector<Cluster> windows = {{1, 1}, {5, 2}, {0, 3}};
  for (const double mean : bootstrap_means(windows, {.resamples = 50, .block = 99})) EXPECT_EQ(mean, 1);
}

// Neighbours that go up and down together: drawing them alone understates the error.
TEST(Bootstrap, BlocksSeeDependentNeighbours) {
  SplitMix64 random(9);
  std::vector<Cluster> windows;
  for (int block = 0; block < 60; ++block) {
    const double level = random.uniform();
    for (int i = 0; i < 5; ++i) windows.push_back({level, 1});
  }
  const auto width = [&](std::int64_t block) {
    const Interval i = percentile_interval(bootstrap_means(windows, {.block = block}));
    return *i.high - *i.low;
  };
  EXPECT_GT(width(15), 1.6 * width(1)) << "sqrt 5 = 2.2 with blocks far longer than the dependence";
}

TEST(Bootstrap, OfTooLittleOrNoNumbersIsUndefined) {
  EXPECT_TRUE(bootstrap_means({}).empty());
  EXPECT_TRUE(bootstrap_means(std::vector<Cluster>{{1, 1}}).empty());
  EXPECT_FALSE(percentile_interval({}).low);
  EXPECT_FALSE(percentile_interval({1, kNan, 2}).low);
  EXPECT_FALSE(percentile_interval(bootstrap_means(std::vector<Cluster>{{0, 0}, {0, 0}})).high);
}

}  // namespace
}  // namespace quantmap
