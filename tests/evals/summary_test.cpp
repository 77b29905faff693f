// What a run makes of its windows (faults B49, B51).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "evals/protocol.hpp"
#include "make_scores.hpp"

namespace quantmap {
namespace {

using namespace testing;
using ::testing::HasSubstr;

ScoreSummary alone(const std::vector<WindowScores>& windows) { return summarize(windows, windows); }

// Windows whose positions have these NLLs, scored by a rule: what a model that gives them would get.
ScoreSummary of_rule(const std::vector<double>& nll_of_target, ScoreRule rule) {
  std::vector<std::int32_t> ids(nll_of_target.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i);
  Protocol protocol;
  protocol.score = rule;
  const EvalWindow window = windows_of_ids({ids}, protocol)[0];
  std::vector<double> scored;
  for (const std::int32_t target : window.targets)
    if (target >= 0) scored.push_back(nll_of_target[static_cast<std::size_t>(target)]);
  return alone({nll_window(0, scored)});
}

// Fault B49: one window of eight targets [6,5,4,3,2,2,1,1] is two perplexities.
TEST(Summary, PerplexityDependsOnWhatIsScored) {
  // Position 0 has no predecessor and is never scored.
  const std::vector<double> nll = {1e9, 6, 5, 4, 3, 2, 2, 1, 1};
  const ScoreSummary all = of_rule(nll, ScoreRule::all), half = of_rule(nll, ScoreRule::second_half);
  EXPECT_EQ(all.tokens, 8);
  EXPECT_NEAR(*all.ppl, std::exp(3.0), 1e-12);
  EXPECT_EQ(half.tokens, 4);
  EXPECT_NEAR(*half.ppl, std::exp(1.5), 1e-12);
}

TEST(Summary, UnequalWindowsAreWeightedByTheirTokens) {
  const std::vector<WindowScores> windows = {nll_window(0, std::vector<double>(512, 2.0)),
                                             nll_window(1, std::vector<double>(100, 4.0))};
  const ScoreSummary s = alone(windows);
  EXPECT_NEAR(*s.ppl, 10.245,
              0.001);  // exp((2*512 + 4*100)/612); the mean of windows would give 20.09 or 31.0
  EXPECT_EQ(s.tokens, 612);
  EXPECT_EQ(s.windows, 2);
}

TEST(Summary, AWindowsWeightIsThatOfItsMean) {
  std::vector<WindowScores> windows = {nll_window(0, {1, 1, 1}), nll_window(1, {4})};
  windows[1].weight = 3;
  EXPECT_NEAR(*alone(windows).nll, 2.5, 1e-15);
  windows[1].weight = 0;  // hf-weights: one new token
  EXPECT_NEAR(*alone(windows).nll, 1.0, 1e-15);
}

TEST(Summary, OfTheReferenceAgainstItselfIsExactlyZero) {
  std::vector<WindowScores> windows = random_windows(30, 40, 1);
  for (WindowScores& w : windows) {
    WindowScores clean;
    clean.window = w.window;
    clean.weight = w.weight;
    for (const float nll : w.nll) clean.add({double{nll}, 0, 0, 0, true, false});
    w = clean;
  }
  const ScoreSummary s = alone(windows);
  for (const Number& zero :
       {s.kl_mean, s.kl_stderr, s.kl_p50, s.kl_p90, s.kl_max, s.tv_mean, s.delta_p_mean, s.delta_p_rms,
        s.ln_ppl_ratio, s.ln_ppl_ratio_stderr, s.top1_stderr, s.kl_stderr_iid})
    EXPECT_EQ(zero, 0.0);
  EXPECT_EQ(s.top1_agreement, 1.0);
  EXPECT_EQ(s.kl_infinite, 0);
  EXPECT_EQ(s.margin_flips, 0);
  EXPECT_EQ(s.status, "ok");
}

// Token by token, from the definitions.
TEST(Summary, EqualsTheDefinitions) {
  const std::vector<WindowScores> mine = random_windows(25, 30, 2);
  std::vector<WindowScores> theirs = random_windows(25, 30, 3);
  const ScoreSummary s = summarize(mine, theirs);
  double n = 0, nll = 0, nll2 = 0, base = 0, kl = 0, kl2 = 0, tv = 0, dp = 0, dp2 = 0, top = 0, kl_max = 0;
  std::int64_t flips = 0;
  for (std::size_t w = 0; w < mine.size(); ++w)
    for (std::size_t t = 0; t < mine[w].nll.size(); ++t) {
      n += 1;
      nll += mine[w].nll[t];
      nll2 += double{mine[w].nll[t]} * mine[w].nll[t];
      base += theirs[w].nll[t];
      kl += mine[w].kl[t];
      kl2 += double{mine[w].kl[t]} * mine[w].kl[t];
      kl_max = std::max(kl_max, double{mine[w].kl[t]});
      tv += mine[w].tv[t];
      dp += mine[w].delta_p[t];
      dp2 += double{mine[w].delta_p[t]} * mine[w].delta_p[t];
      top += mine[w].top1[t] == 1 ? 1 : 0;
      flips += mine[w].top1[t] == 2 ? 1 : 0;
    }
  constexpr double kStored = 1e-6;  // tokens are kept in FP32
  EXPECT_EQ(s.tokens, 750);
  EXPECT_NEAR(*s.nll, nll / n, kStored);
  EXPECT_NEAR(*s.ppl, std::exp(nll / n), 20 * kStored);
  EXPECT_NEAR(*s.ln_ppl_ratio, (nll - base) / n, kStored);
  EXPECT_NEAR(*s.kl_mean, kl / n, kStored);
  EXPECT_NEAR(*s.kl_max, kl_max, kStored);
  EXPECT_NEAR(*s.tv_mean, tv / n, kStored);
  EXPECT_NEAR(*s.delta_p_mean, dp / n, kStored);
  EXPECT_NEAR(*s.delta_p_rms, std::sqrt(dp2 / n), kStored);
  EXPECT_NEAR(*s.top1_agreement, top / n, 1e-15);
  EXPECT_EQ(s.margin_flips, flips);
  EXPECT_NEAR(*s.nll_stderr_iid, std::sqrt((nll2 / n - nll / n * nll / n) / (n - 1)), kStored);
  EXPECT_NEAR(*s.kl_stderr_iid, std::sqrt((kl2 / n - kl / n * kl / n) / (n - 1)), kStored);
  EXPECT_NEAR(*s.ppl_stderr_iid, *s.ppl * *s.nll_stderr_iid, 1e-12);
  EXPECT_NEAR(*s.ppl_stderr, *s.ppl * *s.nll_stderr, 1e-12);
  EXPECT_TRUE(s.kl_p50 && s.kl_p90);
  EXPECT_FALSE(s.kl_p99 || s.kl_p999) << "750 tokens: 7.5 lie beyond the 99th percentile";
}

// Passes store windows and read them back in groups of any size: not a bit changes.
TEST(Summary, DoesNotDependOnPasses) {
  const std::vector<WindowScores> mine = random_windows(23, 17, 4), theirs = random_windows(23, 17, 5);
  const ScoreSummary whole = summarize(mine, theirs);
  for (const std::size_t pass : {1U, 2U, 7U, 23U}) {
    std::vector<WindowScores> stored;
    for (std::size_t begin = 0; begin < mine.size(); begin += pass)
      for (std::size_t i = begin; i < std::min(begin + pass, mine.size()); ++i)
        stored.push_back(
            WindowScores::unpack(mine[i].scheme, mine[i].window, mine[i].pack_tokens(), mine[i].pack_sums()));
    const ScoreSummary s = summarize(stored, theirs);
    EXPECT_EQ(s.nll, whole.nll);
    EXPECT_EQ(s.nll_stderr, whole.nll_stderr);
    EXPECT_EQ(s.ppl, whole.ppl);
    EXPECT_EQ(s.ln_ppl_ratio, whole.ln_ppl_ratio);
    EXPECT_EQ(s.ln_ppl_ratio_stderr, whole.ln_ppl_ratio_stderr);
    EXPECT_EQ(s.kl_mean, whole.kl_mean);
    EXPECT_EQ(s.kl_stderr, whole.kl_stderr);
    EXPECT_EQ(s.kl_p50, whole.kl_p50);
    EXPECT_EQ(s.kl_max, whole.kl_max);
    EXPECT_EQ(s.tv_mean, whole.tv_mean);
    EXPECT_EQ(s.top1_agreement, whole.top1_agreement);
    EXPECT_EQ(s.top1_stderr, whole.top1_stderr);
    EXPECT_EQ(s.delta_p_rms, whole.delta_p_rms);
    EXPECT_EQ(s.margin_flips, whole.margin_flips);
    EXPECT_EQ(s.nll_stderr_iid, whole.nll_stderr_iid);
  }
}

// Fault B51: q = 0 where p > 0.
TEST(Summary, InfiniteKlIsCountedAndLeavesNoMean) {
  std::vector<WindowScores> windows = random_windows(25, 40, 6);
  windows[3].add({1, kInf, 0.5, 0, true, false});
  windows[9].add({1, kInf, 0.5, 0, true, false});
  const ScoreSummary s = alone(windows);
  EXPECT_EQ(s.kl_infinite, 2);
  EXPECT_FALSE(s.kl_mean || s.kl_stderr || s.kl_max || s.kl_stderr_iid);
  EXPECT_TRUE(s.kl_p50) << "the median is still a number";
  EXPECT_TRUE(s.nll && s.tv_mean);
  EXPECT_THAT(s.status, HasSubstr("infinite on 2 of 1002"));
}

TEST(Summary, NanIsAStatusNotANumber) {
  std::vector<WindowScores> windows = random_windows(25, 40, 7);
  const std::vector<WindowScores> reference = windows;
  windows[3].add({NAN, NAN, NAN, NAN, false, false});
  std::vector<WindowScores> longer = reference;
  longer[3].add({1, 0, 0, 0, true, false});
  const ScoreSummary s = summarize(windows, longer);
  EXPECT_FALSE(s.nll || s.ppl || s.nll_stderr || s.ppl_stderr || s.ln_ppl_ratio || s.ln_ppl_ratio_stderr);
  EXPECT_FALSE(s.kl_mean || s.kl_stderr || s.kl_max || s.kl_p50);
  EXPECT_FALSE(s.tv_mean || s.delta_p_mean || s.delta_p_rms);
  EXPECT_FALSE(s.nll_stderr_iid || s.ppl_stderr_iid || s.kl_stderr_iid) << "a spread of NaN is not 0";
  EXPECT_THAT(s.status, HasSubstr("NLL is not a number"));
  EXPECT_THAT(s.status, HasSubstr("KL is not a number"));
}

TEST(Summary, NanAndInfiniteKlTogetherAreBothSaid) {
  std::vector<WindowScores> windows = random_windows(25, 40, 8);
  for (const double kl : {kInf, double{NAN}, kInf, double{NAN}, 0.5})
    windows[0].add({1, kl, 0, 0, true, false});
  const ScoreSummary s = alone(windows);
  EXPECT_FALSE(s.kl_mean || s.kl_p50) << "NaN has no place in an order";
  EXPECT_THAT(s.status, HasSubstr("infinite on 2"));
  EXPECT_THAT(s.status, HasSubstr("KL is not a number"));
}

TEST(Summary, InfiniteNllAndOverflowAreSaid) {
  const ScoreSummary infinite = alone({nll_window(0, {1, kInf}), nll_window(1, {1, 1})});
  EXPECT_FALSE(infinite.nll || infinite.ppl || infinite.nll_stderr || infinite.nll_stderr_iid);
  EXPECT_NE(infinite.status, "ok");
  const ScoreSummary large = alone({nll_window(0, {2000, 2000}), nll_window(1, {1000, 1000})});
  EXPECT_EQ(large.nll, 1500.0);
  EXPECT_FALSE(large.ppl || large.ppl_stderr);
  EXPECT_THAT(large.status, HasSubstr("overflow"));
}

TEST(Summary, FewWindowsAreFlagged) {
  EXPECT_THAT(alone(random_windows(1, 40, 9)).notes, ::testing::ElementsAre(HasSubstr("one window")));
  EXPECT_FALSE(alone(random_windows(1, 40, 9)).nll_stderr);
  EXPECT_THAT(alone(random_windows(19, 40, 9)).notes, ::testing::ElementsAre(HasSubstr("19 windows")));
  EXPECT_TRUE(alone(random_windows(20, 40, 9)).notes.empty());
}

TEST(Summary, OfNothingSaysSo) {
  EXPECT_EQ(alone({}).status, "no token scored");
  EXPECT_EQ(alone({nll_window(0, {})}).status, "no token scored");
  EXPECT_FALSE(alone({}).nll || alone({}).kl_mean || alone({}).top1_agreement);
}

TEST(Summary, OfUnlikeWindowsIsRefused) {
  const auto a = nll_window(0, {1, 2}), b = nll_window(0, {1, 2, 3}), c = nll_window(1, {1, 2});
  const auto refused = [](std::vector<WindowScores> x, std::vector<WindowScores> y) {
    EXPECT_THROW(summarize(x, y), Error);
  };
  refused({a}, {});
  refused({a}, {b});
  refused({a}, {c});
}

}  // namespace
}  // namespace quantmap
