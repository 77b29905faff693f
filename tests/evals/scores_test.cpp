// Token scores of windows: what is kept, stored and read back.
#include "evals/scores.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"
#include "make_scores.hpp"

namespace quantmap {
namespace {

using namespace testing;

TEST(WindowScores, SumsWhatWasAdded) {
  WindowScores w;
  w.add({1, 0.5, 0.25, -0.125, true, false});
  w.add({3, 0.25, 0.5, 0.25, false, true});
  w.add({2, kInf, 1, 0, false, false});
  EXPECT_EQ(w.tokens(), 3);
  EXPECT_EQ(w.nll_sum, 6.0);
  EXPECT_EQ(w.nll2_sum, 14.0);
  EXPECT_EQ(w.kl_sum, 0.75) << "an infinite KL is counted, not summed";
  EXPECT_EQ(w.kl2_sum, 0.3125);
  EXPECT_EQ(w.kl_infinite, 1);
  EXPECT_EQ(w.kl_max, kInf);
  EXPECT_EQ(w.tv_sum, 1.75);
  EXPECT_EQ(w.delta_p_sum, 0.125);
  EXPECT_EQ(w.delta_p2_sum, 0.015625 + 0.0625);
  EXPECT_EQ(w.top1_sum, 1);
  EXPECT_EQ(w.margin_flips, 1);
  EXPECT_EQ(w.top1, (std::vector<std::uint8_t>{1, 2, 0}));
}

TEST(WindowScores, PackAndUnpackKeepEveryBit) {
  std::vector<WindowScores> windows = random_windows(4, 37, 1);
  windows.push_back(WindowScores{});  // nothing scored
  windows.push_back(random_windows(1, 1, 2)[0]);
  windows.back().add({NAN, kInf, NAN, 0.5, false, true});
  for (const WindowScores& w : windows) {
    const std::string tokens = w.pack_tokens(), sums = w.pack_sums();
    const WindowScores back = WindowScores::unpack(w.scheme, w.window, tokens, sums);
    EXPECT_EQ(back.pack_tokens(), tokens);
    EXPECT_EQ(back.pack_sums(), sums);
    EXPECT_EQ(back.scheme, w.scheme);
    EXPECT_EQ(back.window, w.window);
    EXPECT_EQ(back.tokens(), w.tokens());
    EXPECT_EQ(back.weight, w.weight);
    EXPECT_EQ(back.top1, w.top1);
    EXPECT_EQ(back.kl_infinite, w.kl_infinite);
  }
}

TEST(WindowScores, AShortPackIsRefused) {
  const WindowScores w = random_windows(1, 5, 3)[0];
  const std::string tokens = w.pack_tokens(), sums = w.pack_sums();
  EXPECT_THROW(WindowScores::unpack(0, 0, tokens, sums.substr(1)), Error);
  EXPECT_THROW(WindowScores::unpack(0, 0, tokens, sums + "x"), Error);
  for (const std::size_t length : {std::size_t{0}, tokens.size() / 2, tokens.size() - 1})
    EXPECT_THROW(WindowScores::unpack(0, 0, tokens.substr(0, length), sums), Error) << length;
}

struct StderrCase {
  const char* reason;
  std::vector<Cluster> windows;
  Number want;
};
TEST(ClusteredStderr, HandValues) {
  const StderrCase cases[] = {
      {"nothing", {}, {}},
      {"one window: undefined", {{10, 5}}, {}},
      {"no tokens: undefined", {{0, 0}, {0, 0}}, {}},
      // Mean 2; deviations 3 - 2, 1 - 2: 2/1 * 2 / 4.
      {"two windows of one token: half their distance", {{3, 1}, {1, 1}}, 1.0},
      // Mean (8 + 2)/5 = 2; deviations 8 - 6 = 2, 2 - 4 = -2: sqrt(2/1 * 8)/5.
      {"unequal windows", {{8, 3}, {2, 2}}, 0.8},
      {"equal means: no spread", {{6, 3}, {2, 1}, {10, 5}}, 0.0},
      // Mean 0; deviations 3, 0, -3: sqrt(3/2 * 18)/6.
      {"three windows of two", {{3, 2}, {0, 2}, {-3, 2}}, std::sqrt(27.0) / 6},
      {"not a number", {{NAN, 1}, {1, 1}}, {}},
      {"infinite", {{kInf, 1}, {1, 1}}, {}},
  };
  for (const StderrCase& c : cases) {
    const Number got = clustered_stderr(c.windows);
    ASSERT_EQ(got.has_value(), c.want.has_value()) << c.reason;
    if (c.want) {
      EXPECT_NEAR(*got, *c.want, 1e-15) << c.reason;
    }
  }
}

// formats.md, section 11, token by token: SE^2 = C/(C-1) sum_w (sum_{t in w} (x_t - m))^2 / n^2.
TEST(ClusteredStderr, EqualsItsFormulaTokenByToken) {
  SplitMix64 random(4);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::vector<double>> windows(2 + random.next() % 30);
    double sum = 0, count = 0;
    for (auto& window : windows) {
      const double level = 4 * random.uniform();
      window.resize(1 + random.next() % 60);
      for (double& x : window) sum += x = level + random.uniform(), ++count;
    }
    double squares = 0;
    std::vector<Cluster> clusters;
    for (const auto& window : windows) {
      double deviation = 0, total = 0;
      for (const double x : window) deviation += x - sum / count, total += x;
      squares += deviation * deviation;
      clusters.push_back({total, static_cast<double>(window.size())});
    }
    const auto c = static_cast<double>(windows.size());
    const double want = std::sqrt(c / (c - 1) * squares / (count * count));
    EXPECT_NEAR(clustered_stderr(clusters).value(), want, 1e-11 * want);
  }
}

// Windows of one token are independent tokens: the usual error of a mean.
TEST(ClusteredStderr, OfWindowsOfOneTokenIsTheUsualOne) {
  std::vector<Cluster> clusters;
  double sum = 0, sum2 = 0;
  SplitMix64 random(5);
  constexpr int kCount = 200;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.uniform();
    clusters.push_back({x, 1});
    sum += x;
    sum2 += x * x;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(clustered_stderr(clusters).value(), std::sqrt((sum2 / kCount - mean * mean) / (kCount - 1)),
              1e-14);
}

std::vector<float> whole_numbers(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}
struct QuantileCase {
  std::size_t count;
  double f;
  bool defined;
  const char* reason;
};
TEST(ExactQuantile, NeedsFiftyValuesBeyondIt) {
  const QuantileCase cases[] = {
      {0, 0.5, false, "nothing"},
      {99, 0.5, false, "49.5 beyond the median"},
      {100, 0.5, true, "50 beyond the median"},
      {499, 0.9, false, "49.9 beyond"},
      {500, 0.9, true, "50 beyond"},
      {499, 0.1, false, "the thinner side is below"},
      {500, 0.1, true, "50 below"},
      {4999, 0.99, false, "49.99 beyond"},
      {5000, 0.99, true, "exactly 50, though 1 - 0.99 is not 0.01 in double"},
      {49999, 0.999, false, "49.999 beyond"},
      {50000, 0.999, true, "exactly 50"},
  };
  for (const QuantileCase& c : cases) {
    const Number got = exact_quantile(whole_numbers(c.count), c.f);
    ASSERT_EQ(got.has_value(), c.defined) << c.count << " at " << c.f << ": " << c.reason;
    // The values are their places: the quantile at f (n - 1) is that number.
    if (got) {
      EXPECT_NEAR(*got, c.f * static_cast<double>(c.count - 1), 1e-9 * static_cast<double>(c.count))
          << c.reason;
    }
  }
}

TEST(ExactQuantile, InterpolatesBetweenNeighbours) {
  std::vector<float> values(100, 1.0F);
  std::fill(values.begin() + 50, values.end(), 3.0F);
  EXPECT_EQ(exact_quantile(values, 0.5), 2.0);  // at 49.5, between 1 and 3
  std::fill(values.begin(), values.end(), 0.7F);
  EXPECT_EQ(exact_quantile(values, 0.5), double{0.7F}) << "between equal values there is nothing to round";
}

TEST(ExactQuantile, InfiniteValuesLieAboveAndAreNoNumbers) {
  std::vector<float> values = whole_numbers(101);
  std::fill(values.begin() + 51, values.end(), static_cast<float>(kInf));
  EXPECT_EQ(exact_quantile(values, 0.5), 50.0) << "at 50 exactly: the infinite neighbour has no share in it";
  values[50] = static_cast<float>(kInf);
  EXPECT_FALSE(exact_quantile(values, 0.5));
}

}  // namespace
}  // namespace quantmap
