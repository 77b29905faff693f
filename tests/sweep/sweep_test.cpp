// Laws of the engine: what a sweep measures does not depend on passes, threads or resuming; a rule over every
// module is the plain scheme, a rule over none is the reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "checkpoint/make_files.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "support/paths.hpp"
#include "sweep/sweep.hpp"

namespace quantmap {
namespace {

using testing::fresh_dir;
using testing::TinyModel;
using testing::write_tiny_model;

// Everything that a sweep hands over, packed: equal strings are equal bits.
struct Outcome {
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> tokens, sums;  // [scheme, window]
  std::vector<std::string> layers;                                            // error sums of each walker
  std::vector<LayerPeak> peaks;
  std::vector<WindowScores> scores;
};

std::vector<EvalWindow> random_windows(int count, int length, int vocab, std::uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<std::vector<std::int32_t>> ids(static_cast<std::size_t>(count));
  for (auto& window : ids)
    for (int t = 0; t < length; ++t)
      window.push_back(static_cast<std::int32_t>(random.next() % static_cast<std::uint64_t>(vocab)));
  return windows_of_ids(std::move(ids), Protocol{});
}

std::vector<Walker> walkers_for(const std::vector<std::string>& schemes, Compute compute = Compute::bf16) {
  std::vector<Walker> walkers(1);
  walkers[0].compute = compute;
  for (const std::string& scheme : schemes) walkers.push_back({Scheme::parse(scheme), compute});
  return walkers;
}

Outcome sweep(const Checkpoint& checkpoint, const std::vector<Walker>& walkers,
              const std::vector<EvalWindow>& windows, std::int64_t per_pass, int threads,
              std::int64_t stop_after = -1) {
  set_thread_count(threads);
  Outcome outcome;
  SweepJob job;
  job.checkpoint = &checkpoint;
  job.walkers = walkers;
  job.windows = &windows;
  std::vector<WalkerState> states;
  std::int64_t stored = 0;
  job.sink = [&](const PassResult& pass) {
    for (const WindowScores& s : pass.scores) {
      outcome.tokens[{s.scheme, s.window}] = s.pack_tokens();
      outcome.sums[{s.scheme, s.window}] = s.pack_sums();
      outcome.scores.push_back(s);
    }
    outcome.peaks.insert(outcome.peaks.end(), pass.peaks.begin(), pass.peaks.end());
    states.clear();
    // As the database gives them back.
    for (const WalkerState& state : *pass.states) states.push_back(WalkerState::unpack(state.pack()));
    stored = pass.end_window;
  };
  SweepPlan plan;
  plan.windows_per_pass = per_pass;
  if (stop_after >= 0) {
    job.interrupted = [&] { return stored >= stop_after; };
    EXPECT_THROW(run_sweep(job, plan), Error);
    job.interrupted = nullptr;
    job.first_window = stored;
    job.states = states;
  }
  run_sweep(job, plan);
  for (const WalkerState& state : states)
    for (const ErrorSums& sums : state.layers) outcome.layers.push_back(sums.pack());
  return outcome;
}

double kl_sum(const Outcome& outcome, std::int64_t scheme) {
  double sum = 0;
  for (const WindowScores& s : outcome.scores)
    if (s.scheme == scheme) sum += s.kl_sum;
  return sum;
}

const std::vector<std::string> kMixed = {"W8A8",
                                         "W4A16+KVFP8",
                                         "NVFP4",
                                         "FP8_BLOCK",
                                         "w=nf4:nested,kv=int8:tensor",
                                         "w=int8:tensor,a=fp8_e4m3:tensor,k=int4:channel,v=mxfp4"};

class SweepLaw : public ::testing::Test {
 protected:
  void SetUp() override {
    TinyModel model;
    model.hidden = 64;
    model.intermediate = 160;
    model.vocab = 600;  // two chunks of outputs
    dir_ = fresh_dir("sweep");
    write_tiny_model(dir_, model);
  }
  std::filesystem::path dir_;
};

TEST_F(SweepLaw, PassesThreadsAndResumingChangeNoBit) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto windows = random_windows(5, 150, 600, 7);
  const auto walkers = walkers_for(kMixed);
  const Outcome whole = sweep(checkpoint, walkers, windows, 5, 1);
  ASSERT_EQ(whole.tokens.size(), 5 * walkers.size());
  const struct {
    std::int64_t per_pass;
    int threads;
    std::int64_t stop_after;
  } kCases[] = {{5, 2, -1}, {1, 1, -1}, {2, 2, -1}, {1, 3, 2}, {2, 1, 2}};
  for (const auto& c : kCases) {
    const Outcome other = sweep(checkpoint, walkers, windows, c.per_pass, c.threads, c.stop_after);
    const std::string what = "per pass " + std::to_string(c.per_pass) + ", threads " +
                             std::to_string(c.threads) + ", stopped after " + std::to_string(c.stop_after);
    EXPECT_EQ(other.tokens, whole.tokens) << what;
    EXPECT_EQ(other.sums, whole.sums) << what;
    EXPECT_EQ(other.layers, whole.layers) << what;
  }
}

TEST_F(SweepLaw, TheReferenceAgainstItselfIsExactlyZero) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto windows = random_windows(2, 70, 600, 8);
  for (const Compute compute : {Compute::bf16, Compute::f32, Compute::bf16_serve}) {
    std::vector<Walker> walkers = walkers_for({}, compute);
    walkers.push_back(walkers[0]);
    const Outcome outcome = sweep(checkpoint, walkers, windows, 2, 2);
    EXPECT_EQ(kl_sum(outcome, 1), 0.0);
    for (const WindowScores& s : outcome.scores) {
      EXPECT_EQ(s.tv_sum, 0.0);
      EXPECT_EQ(s.top1_sum, s.tokens());
      EXPECT_EQ(s.delta_p_sum, 0.0);
    }
  }
}

TEST_F(SweepLaw, ARuleOverEveryModuleIsThePlainSchemeToTheBit) {
  testing::write_file(
      dir_ / "all.json",
      R"({"rules":[{"modules":"*","w":"int4:g32","a":"int8:token"}],"kv":[{"layers":"*","kv":"fp8_e4m3:tensor"}]})");
  testing::write_file(dir_ / "none.json", R"({"rules":[{"modules":"/no such module/","w":"int4"}]})");
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto windows = random_windows(2, 90, 600, 9);
  const auto walkers =
      walkers_for({"w=int4:g32,a=int8:token,kv=fp8_e4m3:tensor", "@" + (dir_ / "all.json").string(),
                   "@" + (dir_ / "none.json").string(), "w=int4:g32,ignore=/./"});
  const Outcome outcome = sweep(checkpoint, walkers, windows, 2, 2);
  for (std::int64_t w = 0; w < 2; ++w) {
    EXPECT_EQ(outcome.tokens.at({2, w}), outcome.tokens.at({1, w}));
    EXPECT_EQ(outcome.sums.at({2, w}), outcome.sums.at({1, w}));
  }
  EXPECT_GT(kl_sum(outcome, 1), 0.0);
  EXPECT_EQ(kl_sum(outcome, 3), 0.0);
  EXPECT_EQ(kl_sum(outcome, 4), 0.0);
}

// Each choice by itself does damage, and none of it is lost or doubled when they meet: the layers' errors of
// a scheme that only touches layer 1 are zero before it.
TEST_F(SweepLaw, AnErrorBeginsWhereTheSchemeBegins) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto windows = random_windows(1, 60, 600, 10);
  set_thread_count(2);
  SweepJob job;
  job.checkpoint = &checkpoint;
  job.walkers =
      walkers_for({"w=int4,ignore=/layers\\.0\\./", "w=int4", "include=lm_head,w=int4,ignore=/layers/"});
  job.windows = &windows;
  SweepPlan plan;
  plan.windows_per_pass = 1;
  job.sink = [&](const PassResult& pass) {
    const auto& states = *pass.states;
    EXPECT_EQ(states[1].layers[0].relative_error(), 0.0);
    EXPECT_GT(states[1].layers[1].relative_error().value(), 0.0);
    EXPECT_GT(states[2].layers[0].relative_error().value(), 0.0);
    EXPECT_EQ(states[3].layers[1].relative_error(), 0.0);  // the head alone
    EXPECT_GT(pass.scores[3].kl_sum, 0.0);
  };
  run_sweep(job, plan);
}

// Every format in every role and granularity: finite scores, and a damage that falls with the bits.
TEST_F(SweepLaw, EveryFormatInEveryRoleGivesFiniteScores) {
  std::vector<std::string> schemes;
  for (const char* format :
       {"fp16", "int8", "int4", "fp8_e4m3", "fp8_e5m2", "mxfp8_e4m3", "mxfp4", "nvfp4", "nf4"})
    for (const char* role : {"w", "a", "k", "v"}) schemes.push_back(std::string(role) + "=" + format);
  for (const char* more :
       {"w=int8:tensor:asym", "w=int4:g24:asym", "w=int8:b40x48", "w=fp8_e4m3:b128x128", "a=int8:g48",
        "a=fp8_e4m3:g32", "w=fp8_e4m3:b16x32,a=fp8_e4m3:g32", "a=int4:tensor:asym",
        "w=mxfp4:even,a=mxfp8_e4m3:rceil", "w=nvfp4:4over6,a=nvfp4:noglobal", "kv=int8:channel",
        "kv=fp8_e4m3:tensor:dynamic", "kv=int8:token", "kv=int4:g8", "w=fp16,a=int8:token"})
    schemes.emplace_back(more);
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto windows = random_windows(1, 130, 600, 11);
  for (const Compute compute : {Compute::bf16, Compute::f32}) {
    const Outcome outcome = sweep(checkpoint, walkers_for(schemes, compute), windows, 1, 2);
    for (const WindowScores& s : outcome.scores) {
      if (s.scheme == 0) continue;
      const std::string& scheme = schemes[static_cast<std::size_t>(s.scheme - 1)];
      EXPECT_TRUE(std::isfinite(s.nll_sum)) << scheme;
      EXPECT_TRUE(s.kl_sum > -1e-6 && s.kl_sum < 200) << scheme << ": " << s.kl_sum;
      if (scheme.find("fp16") == std::string::npos) {
        EXPECT_GT(s.kl_sum, 0.0) << scheme;
      }
    }
    const auto damage = [&](const std::string& scheme) {
      const auto at = std::find(schemes.begin(), schemes.end(), scheme) - schemes.begin();
      return kl_sum(outcome, at + 1);
    };
    for (const char* role : {"w=", "a=", "k=", "v="})
      EXPECT_LT(damage(std::string(role) + "int8"), damage(std::string(role) + "int4")) << role;
  }
}

// Formats whose values are exact in BF16 give the same damage in both arithmetics, up to the noise floor.
TEST_F(SweepLaw, Bf16OperandsAgreeWithFp32WithinTheNoiseFloor) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto windows = random_windows(2, 128, 600, 12);
  const std::vector<std::string> schemes = {"w=int4", "w=mxfp4", "w=nvfp4",
                                            "w=fp8_e4m3:b16x32,a=fp8_e4m3:g32", "W8A8"};
  const Outcome bf16 = sweep(checkpoint, walkers_for(schemes, Compute::bf16), windows, 2, 2);
  const Outcome f32 = sweep(checkpoint, walkers_for(schemes, Compute::f32), windows, 2, 2);
  for (std::size_t i = 1; i <= schemes.size(); ++i) {
    const double a = kl_sum(bf16, static_cast<std::int64_t>(i)),
                 b = kl_sum(f32, static_cast<std::int64_t>(i));
    EXPECT_TRUE(std::abs(a - b) <= 0.15 * b) << schemes[i - 1] << ": " << a << " against " << b;
  }
}

// "With any finer scale, appending tokens changes no earlier row" (product.md).
TEST_F(SweepLaw, AppendingTokensChangesNoEarlierRowUnlessAScaleSpansTheWindow) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto longer = random_windows(1, 100, 600, 13);
  auto ids = longer[0].ids;
  ids.resize(80);
  const auto shorter = windows_of_ids({ids}, Protocol{});
  const auto walkers = walkers_for({"W8A8", "MXFP4", "FP8_BLOCK", "kv=int8:token", "kv=fp8_e4m3:tensor",
                                    "a=nf4", "a=int8:tensor", "kv=int8:tensor", "a=nvfp4"});
  const Outcome a = sweep(checkpoint, walkers, longer, 1, 2), b = sweep(checkpoint, walkers, shorter, 1, 2);
  constexpr std::size_t kPerRow = 7;  // walkers without a scale over the window, the reference among them
  int changed = 0;
  for (std::size_t w = 0; w < walkers.size(); ++w) {
    bool same = true;
    for (std::size_t t = 0; t < 79; ++t)
      same = same && std::abs(a.scores[w].nll[t] - b.scores[w].nll[t]) <= 1e-4F;
    if (w < kPerRow)
      EXPECT_TRUE(same) << w;
    else
      changed += same ? 0 : 1;
  }
  EXPECT_GT(changed, 0);  // the largest value was not among the appended tokens for every scheme
}

TEST_F(SweepLaw, PlanNamesTheLeastMemoryAndGrowsWithIt) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto windows = random_windows(40, 64, 600, 14);
  const auto walkers = walkers_for(kMixed);
  set_thread_count(2);
  const SweepPlan all = plan_sweep(checkpoint, walkers, windows, std::int64_t{1} << 34);
  EXPECT_EQ(all.passes, 1);
  EXPECT_EQ(all.windows_per_pass, 40);
  const SweepPlan least = plan_sweep(checkpoint, walkers, windows, all.least_bytes);
  EXPECT_EQ(least.windows_per_pass, 1);
  EXPECT_LE(least.bytes, all.least_bytes);
  try {
    plan_sweep(checkpoint, walkers, windows, all.least_bytes - 1);
    FAIL() << "less than the least was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("the least possible is"));
  }
  std::int64_t before = 0;
  for (std::int64_t memory = all.least_bytes; memory < all.bytes;
       memory += (all.bytes - all.least_bytes) / 7 + 1) {
    const SweepPlan plan = plan_sweep(checkpoint, walkers, windows, memory);
    EXPECT_LE(plan.bytes, memory);
    EXPECT_GE(plan.windows_per_pass, before);
    EXPECT_GE(plan.windows_per_pass * plan.passes, 40);
    before = plan.windows_per_pass;
  }
}

// So long that attention, not a Linear or the head, needs the most scratch: with BF16 operands more than with
// FP32 ones, since probabilities stand beside the scores.
TEST_F(SweepLaw, ALongWindowFitsItsScratch) {
  TinyModel model;
  model.layers = 1;
  model.max_position = 4096;
  const auto dir = fresh_dir("sweep_long");
  write_tiny_model(dir, model);
  const Checkpoint checkpoint = Checkpoint::open(dir);
  const auto windows = random_windows(1, 4096, model.vocab, 15);
  for (const Compute compute : {Compute::bf16, Compute::f32}) {
    const Outcome outcome = sweep(checkpoint, walkers_for({"kv=int8:token"}, compute), windows, 1, 1);
    for (const WindowScores& s : outcome.scores) EXPECT_TRUE(std::isfinite(s.nll_sum));
  }
}

TEST_F(SweepLaw, IdsOutsideTheVocabularyAreRefused) {
  const Checkpoint checkpoint = Checkpoint::open(dir_);
  const auto windows = windows_of_ids({{1, 2, 600}}, Protocol{});
  SweepJob job;
  job.checkpoint = &checkpoint;
  job.walkers = walkers_for({});
  job.windows = &windows;
  job.sink = [](const PassResult&) {};
  SweepPlan plan;
  plan.windows_per_pass = 1;
  EXPECT_THROW(run_sweep(job, plan), Error);
}

}  // namespace
}  // namespace quantmap
