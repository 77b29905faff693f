// Every two schemes of a sweep on the same windows.
#include "evals/comparison.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "make_scores.hpp"

namespace quantmap {
namespace {

using namespace testing;

std::vector<SchemeWindows> sweep_of(std::initializer_list<std::vector<WindowScores>> schemes) {
  std::vector<SchemeWindows> sweep;
  for (const auto& scores : schemes)
    sweep.push_back(scheme_windows(static_cast<std::int64_t>(sweep.size()), scores));
  return sweep;
}

TEST(Comparison, HasEveryPairOnceAndNoKlOfTheReference) {
  const auto sweep =
      sweep_of({random_windows(20, 30, 31), random_windows(20, 30, 32), random_windows(20, 30, 33)});
  std::vector<std::tuple<std::string, std::int64_t, std::int64_t>> pairs;
  for (const Comparison& c : compare_schemes(sweep, 0)) pairs.emplace_back(c.metric, c.scheme, c.than);
  EXPECT_THAT(pairs,
              ::testing::ElementsAre(std::tuple("ln_ppl_ratio", 1, 0), std::tuple("ln_ppl_ratio", 2, 0),
                                     std::tuple("ln_ppl_ratio", 2, 1), std::tuple("kl_mean", 2, 1)));
}

TEST(Comparison, AgainstTheReferenceIsTheRowsOwnRatio) {
  const auto reference = random_windows(25, 30, 34), scheme = random_windows(25, 30, 35);
  const ScoreSummary s = summarize(scheme, reference);
  const Comparison c = compare_schemes(sweep_of({reference, scheme}), 0)[0];
  EXPECT_NEAR(*c.d.difference, *s.ln_ppl_ratio, 1e-12);
  EXPECT_NEAR(*c.d.stderr_of_difference, *s.ln_ppl_ratio_stderr, 1e-12);
}

TEST(Comparison, OfASchemeWithItselfIsEqual) {
  const auto reference = random_windows(25, 30, 36), scheme = random_windows(25, 30, 37);
  const auto all = compare_schemes(sweep_of({reference, scheme, scheme}), 0);
  for (const Comparison& c : all)
    if (c.than == 1) {
      EXPECT_EQ(c.verdict, Verdict::equal) << c.metric;
      EXPECT_EQ(c.bootstrap.low, 0.0);
      EXPECT_FALSE(c.more_windows);
    }
}

TEST(Comparison, OfAnInfiniteKlIsUndefinedInKlAlone) {
  auto scheme = random_windows(25, 30, 38);
  const auto reference = random_windows(25, 30, 39), other = random_windows(25, 30, 40);
  scheme[3].kl_infinite = 1;
  for (const Comparison& c : compare_schemes(sweep_of({reference, other, scheme}), 0))
    EXPECT_EQ(c.verdict == Verdict::undefined, c.metric == "kl_mean") << c.metric << c.scheme << c.than;
}

// Many pairs looked at: each needs more windows than it would alone.
TEST(Comparison, MoreWindowsAreCountedAtHolmsLevel) {
  std::vector<SchemeWindows> sweep;
  for (int scheme = 0; scheme < 6; ++scheme)
    sweep.push_back(scheme_windows(scheme, random_windows(25, 30, 50 + static_cast<std::uint64_t>(scheme))));
  int counted = 0;
  for (const Comparison& c : compare_schemes(sweep, 0)) {
    EXPECT_GE(*c.p_holm, *c.d.p);
    if (!c.more_windows) continue;
    const Number alone = windows_to_settle(c.d);
    ASSERT_TRUE(alone);
    EXPECT_GE(*c.more_windows, *alone);
    EXPECT_GT(*c.more_windows, 0);
    ++counted;
  }
  EXPECT_GT(counted, 5) << "random schemes are alike";
}

}  // namespace
}  // namespace quantmap
