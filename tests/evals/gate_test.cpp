// The acceptance gate: its grammar, its bounds, and that its verdicts are right as often as they say.
#include "evals/gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/error.hpp"
#include "make_scores.hpp"

namespace quantmap {
namespace {

using namespace testing;
using ::testing::HasSubstr;

Number no_column(std::string_view) { return std::nullopt; }

TEST(Gate, ReadsConditions) {
  const auto conditions = parse_conditions(" kl<0.01,recovery >= 0.99\n top1 > 9e-1  bpw_model<=4.5");
  ASSERT_EQ(conditions.size(), 4u);
  const std::tuple<const char*, const char*, Relation, double> expected[] = {
      {"kl<0.01", "kl_mean", Relation::less, 0.01},
      {"recovery>=0.99", "recovery", Relation::greater_equal, 0.99},
      {"top1>9e-1", "top1_agreement", Relation::greater, 0.9},
      {"bpw_model<=4.5", "bpw_model", Relation::less_equal, 4.5}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(conditions[i].text, std::get<0>(expected[i]));
    EXPECT_EQ(conditions[i].metric, std::get<1>(expected[i]));
    EXPECT_EQ(conditions[i].relation, std::get<2>(expected[i]));
    EXPECT_EQ(conditions[i].margin, std::get<3>(expected[i]));
  }
}

TEST(Gate, RefusesWhatIsNoCondition) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "no condition"},
      {"  ", "no condition"},
      {"kl", "kl"},
      {"kl<", "kl<"},
      {"<0.1", "<0.1"},
      {"kl<0.1x", "kl<0.1x"},
      {"kl=0.1", "kl=0.1"},
      {"kl<<0.1", "kl<<0.1"},
      {"kl<nan", "kl<nan"},
      {"kl<inf", "kl<inf"},
      {"quality<1", "unknown metric"},
      {"quality<1", "kl_mean or kl"},
      {"kl<0.1 kl", "found \"kl\""},
      {"kl<1=2", "=2"},
      {"kl_stderr<1", "unknown metric"},
  };
  for (const auto& [text, found] : cases) {
    try {
      parse_conditions(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.what(), HasSubstr(found)) << text;
    }
  }
}

struct JudgeCase {
  const char* condition;
  Number low, high;
  GateVerdict verdict;
  const char* reason;
};
TEST(Gate, JudgesByTheBoundThatTheMarginAsksFor) {
  const JudgeCase cases[] = {
      {"kl<0.01", 0.005, 0.009, GateVerdict::pass, "worse than 0.009 is ruled out"},
      {"kl<0.01", 0.011, 0.02, GateVerdict::fail, "better than 0.011 is ruled out"},
      {"kl<0.01", 0.009, 0.011, GateVerdict::undecided, "the margin lies between"},
      {"kl<0.01", 0.005, 0.01, GateVerdict::undecided, "< is not <="},
      {"kl<=0.01", 0.005, 0.01, GateVerdict::pass, "<= holds at the margin"},
      {"kl<0.01", 0.01, 0.02, GateVerdict::fail, "even the best is not below"},
      {"kl<0.01", {}, {}, GateVerdict::undecided, "one window bounds nothing"},
      {"kl<0.01", 0.02, {}, GateVerdict::fail, "the side that is known is enough"},
      {"kl<0.01", 0.001, {}, GateVerdict::undecided, "nothing bounds it from above"},
      {"recovery>0.99", 0.992, 1.01, GateVerdict::pass, "worse than 0.992 is ruled out"},
      {"recovery>0.99", 0.9, 0.98, GateVerdict::fail, "better than 0.98 is ruled out"},
      {"recovery>0.99", 0.98, 1.0, GateVerdict::undecided, "between"},
      {"recovery>=0.99", 0.99, 1.0, GateVerdict::pass, ">= holds at the margin"},
  };
  for (const JudgeCase& c : cases) {
    Measured m;
    m.value = 0.01;
    m.low = c.low;
    m.high = c.high;
    EXPECT_EQ(gate_verdict_name(judge(parse_conditions(c.condition)[0], m)), gate_verdict_name(c.verdict))
        << c.condition << ": " << c.reason;
  }
}

TEST(Gate, TheWorstVerdictStands) {
  using enum GateVerdict;
  EXPECT_EQ(worst(pass, pass), pass);
  EXPECT_EQ(worst(pass, undecided), undecided);
  EXPECT_EQ(worst(undecided, fail), fail);
  EXPECT_EQ(worst(fail, pass), fail);
}

// Each metric's value is the column of that name, and its bounds are the column's error, one-sided.
TEST(Gate, MeasuresWhatTheRowsReport) {
  const auto scheme = random_windows(40, 60, 21), reference = random_windows(40, 60, 22);
  const ScoreSummary s = summarize(scheme, reference);
  const double t = student_t_quantile(0.95, 39);
  const std::tuple<const char*, Number, Number> linear[] = {
      {"nll", s.nll, s.nll_stderr},
      {"ln_ppl_ratio", s.ln_ppl_ratio, s.ln_ppl_ratio_stderr},
      {"kl_mean", s.kl_mean, s.kl_stderr},
      {"top1_agreement", s.top1_agreement, s.top1_stderr}};
  for (const auto& [metric, value, error] : linear) {
    const Measured m = measured(metric, scheme, reference, no_column);
    EXPECT_NEAR(m.value, *value, 1e-12) << metric;
    EXPECT_NEAR(*m.low, *value - t * *error, 1e-12) << metric;
    EXPECT_NEAR(*m.high, *value + t * *error, 1e-12) << metric;
  }
  const auto value_of = [&](const char* metric) {
    const Measured m = measured(metric, scheme, reference, no_column);
    EXPECT_LE(*m.low, m.value) << metric;
    EXPECT_LE(m.value, *m.high) << metric;
    return m.value;
  };
  EXPECT_NEAR(value_of("ppl"), *s.ppl, 1e-9);
  EXPECT_NEAR(value_of("recovery"), std::exp(-*s.ln_ppl_ratio), 1e-12);
  EXPECT_NEAR(value_of("tv_mean"), *s.tv_mean, 1e-12);
  EXPECT_NEAR(value_of("delta_p_mean"), *s.delta_p_mean, 1e-12);
  EXPECT_NEAR(value_of("delta_p_rms"), *s.delta_p_rms, 1e-12);
  EXPECT_EQ(value_of("kl_p50"), *s.kl_p50);
  EXPECT_EQ(value_of("kl_p90"), *s.kl_p90);
  EXPECT_EQ(value_of("kl_max"), *s.kl_max);
  EXPECT_EQ(value_of("margin_flips"), static_cast<double>(s.margin_flips));
  EXPECT_EQ(value_of("kl_infinite"), 0);
  const auto column = [](std::string_view name) { return name == "bpw_model" ? Number(4.25) : Number(); };
  EXPECT_EQ(measured("bpw_model", scheme, reference, column).value, 4.25);
  EXPECT_THAT(measured("bpw_quantized", scheme, reference, column).undefined, HasSubstr("bpw_quantized"));
}

TEST(Gate, ASchemeWhoseNumbersAreNoneFails) {
  auto scheme = random_windows(30, 40, 23);
  const auto kl = parse_conditions("kl<0.01")[0];
  auto reference = scheme;
  scheme[3].add({1, kInf, 0.5, 0, false, false});
  reference[3].add({1, 0, 0, 0, true, false});
  EXPECT_EQ(judge(kl, measured("kl_mean", scheme, reference, no_column)), GateVerdict::fail) << "infinite";
  scheme[4].add({NAN, NAN, NAN, NAN, false, false});
  reference[4].add({1, 0, 0, 0, true, false});
  for (const char* metric :
       {"ppl", "recovery", "tv_mean", "top1_agreement", "margin_flips", "kl_p50", "kl_max"})
    EXPECT_TRUE(measured(metric, scheme, reference, no_column).broken) << metric;
}

TEST(Gate, WhatTooLittleTextCannotTellIsUndecided) {
  const auto one = random_windows(1, 200, 24);
  for (const char* condition : {"kl<0.01", "kl<100", "top1>0.5", "recovery>0.5", "kl_p999<100"}) {
    const Condition c = parse_conditions(condition)[0];
    EXPECT_EQ(judge(c, measured(c.metric, one, one, no_column)), GateVerdict::undecided) << condition;
  }
  EXPECT_EQ(judge(parse_conditions("kl<1")[0], measured("kl_mean", {}, {}, no_column)),
            GateVerdict::undecided);
}

// A scheme at the margin passes, and fails, one time in twenty; far from it nearly always as it should.
TEST(Gate, ErrsAtTheMarginAsOftenAsItSays) {
  constexpr int kRuns = 4000;
  SplitMix64 random(25);
  const auto run = [&](const char* text) {
    const Condition condition = parse_conditions(text)[0];
    std::array<int, 3> verdicts{};
    for (int i = 0; i < kRuns; ++i) {
      std::vector<WindowScores> windows;
      for (int w = 0; w < 40; ++w) {
        WindowScores window;
        window.window = w;
        window.weight = 10;
        const double level = 0.5 + random.uniform();  // KL of mean 1
        for (int t = 0; t < 10; ++t) window.add({1, level * 2 * random.uniform(), 0, 0, true, false});
        windows.push_back(std::move(window));
      }
      ++verdicts[static_cast<std::size_t>(
          judge(condition, measured(condition.metric, windows, windows, no_column)))];
    }
    std::array<double, 3> shares{};
    for (std::size_t v = 0; v < 3; ++v) shares[v] = static_cast<double>(verdicts[v]) / kRuns;
    return shares;
  };
  const auto at = run("kl<1");
  EXPECT_NEAR(at[0], 0.05, 0.02);
  EXPECT_NEAR(at[1], 0.05, 0.02);
  EXPECT_GT(run("kl<1.5")[0], 0.99);
  EXPECT_GT(run("kl<0.5")[1], 0.99);
}

// The order-statistic bounds of a quantile whose truth is known: KL uniform on (0, 1) in every window.
TEST(Gate, BoundsOfAQuantileHoldIt) {
  constexpr int kRuns = 1000;
  int below = 0, above = 0;
  for (int i = 0; i < kRuns; ++i) {
    const auto windows = random_windows(30, 40, 1000 + static_cast<std::uint64_t>(i));
    const Measured m = measured("kl_p90", windows, windows, no_column);
    below += 0.9 < *m.low;
    above += 0.9 > *m.high;
  }
  EXPECT_NEAR(static_cast<double>(below) / kRuns, 0.05, 0.025);
  EXPECT_NEAR(static_cast<double>(above) / kRuns, 0.05, 0.025);
}

}  // namespace
}  // namespace quantmap
