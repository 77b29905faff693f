// Laws of a task's items in the engine: a request behind a shared prefix scores as if it stood alone; items
// leave what is measured on texts as it is; passes and threads change nothing.
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/make_files.hpp"
#include "core/parallel.hpp"
#include "core/random.hpp"
#include "evals/task_window.hpp"
#include "support/paths.hpp"
#include "sweep/sweep.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kVocab = 600;

std::vector<std::int32_t> random_ids(int count, SplitMix64& random) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back(static_cast<std::int32_t>(random.next() % kVocab));
  return ids;
}

// Shared contexts, contexts that part at the first, a middle and the last token, one token in all, more rows
// than a tile.
std::vector<TaskItem> make_items() {
  SplitMix64 random(5);
  std::vector<TaskItem> items;
  const auto add = [&](int shared, std::vector<std::pair<int, int>> requests) {
    TaskItem item;
    item.index = static_cast<std::int64_t>(items.size());
    const std::vector<std::int32_t> common = random_ids(shared, random);
    for (const auto& [own, continuation] : requests) {
      TaskRequest request;
      request.context = common;
      const auto more = random_ids(own, random);
      request.context.insert(request.context.end(), more.begin(), more.end());
      request.continuation = random_ids(continuation, random);
      item.requests.push_back(std::move(request));
    }
    items.push_back(std::move(item));
  };
  add(20, {{0, 3}, {0, 1}, {0, 7}, {0, 12}});
  add(0, {{5, 2}, {9, 2}});
  add(130, {{0, 70}, {0, 1}});
  add(11, {{1, 4}, {3, 4}});
  add(1, {{0, 1}});
  add(64, {{0, 1}, {0, 1}, {0, 1}, {0, 1}});
  return items;
}

EvalWindow alone(const TaskRequest& request) {
  EvalWindow window;
  window.ids = request.context;
  window.ids.insert(window.ids.end(), request.continuation.begin(), request.continuation.end() - 1);
  window.targets.assign(request.context.size() - 1, -1);
  window.targets.insert(window.targets.end(), request.continuation.begin(), request.continuation.end());
  window.weight = static_cast<double>(window.scored());
  return window;
}

struct Outcome {
  std::vector<WindowScores> scores;
  std::vector<WindowAnswer> answers;
  std::vector<LayerPeak> peaks;
  std::vector<std::string> layers;  // error sums of each walker
};

class ItemLaw : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::TinyModel model;
    model.hidden = 64;
    model.intermediate = 160;
    model.vocab = kVocab;
    dir_ = testing::fresh_dir("items");
    testing::write_tiny_model(dir_, model);
    checkpoint_.emplace(Checkpoint::open(dir_));
    // No scale spans a window: what stands beside a request must not matter.
    walkers_.resize(1);
    walkers_[0].compute = Compute::f32;
    for (const char* scheme : {"W8A8", "W4A16+KVFP8", "w=mxfp4,a=mxfp8_e4m3,kv=int8:token"})
      walkers_.push_back({Scheme::parse(scheme), Compute::f32});
  }
  Outcome sweep(const std::vector<EvalWindow>& windows, std::int64_t tokens, int threads = 2) const {
    set_thread_count(threads);
    Outcome outcome;
    SweepJob job;
    job.checkpoint = &*checkpoint_;
    job.walkers = walkers_;
    job.windows = &windows;
    job.sink = [&](const PassResult& pass) {
      outcome.scores.insert(outcome.scores.end(), pass.scores.begin(), pass.scores.end());
      outcome.answers.insert(outcome.answers.end(), pass.answers.begin(), pass.answers.end());
      outcome.peaks.insert(outcome.peaks.end(), pass.peaks.begin(), pass.peaks.end());
      outcome.layers.clear();
      for (const WalkerState& state : *pass.states)
        for (const ErrorSums& sums : state.layers) outcome.layers.push_back(sums.pack());
    };
    SweepPlan plan;
    plan.windows_per_pass = 2;
    plan.tokens_per_pass = tokens;
    run_sweep(job, plan);
    return outcome;
  }
  std::filesystem::path dir_;
  std::optional<Checkpoint> checkpoint_;
  std::vector<Walker> walkers_;
};

std::vector<EvalWindow> windows_of(const std::vector<TaskItem>& items) {
  std::vector<EvalWindow> windows;
  for (const TaskItem& item : items) windows.push_back(item_window(item));
  return windows;
}

TEST_F(ItemLaw, ARequestScoresAsIfItStoodAlone) {
  const std::vector<TaskItem> items = make_items();
  std::vector<EvalWindow> requests;
  for (const TaskItem& item : items)
    for (const TaskRequest& request : item.requests) requests.push_back(alone(request));
  const Outcome together = sweep(windows_of(items), 1000), apart = sweep(requests, 1000);
  ASSERT_EQ(together.answers.size(), items.size() * walkers_.size());
  std::size_t request = 0;
  for (std::size_t i = 0; i < items.size(); ++i)
    for (std::size_t c = 0; c < items[i].requests.size(); ++c, ++request)
      for (std::size_t w = 0; w < walkers_.size(); ++w) {
        const double got = together.answers[i * walkers_.size() + w].answer.loglikelihood[c];
        const double want = -apart.scores[request * walkers_.size() + w].nll_sum;
        // Shapes of products differ, so sums are taken in another order; a value at the edge of a code may
        // then fall to its other side.
        const double near = w == 0 ? 1e-5 : 1e-3;
        EXPECT_NEAR(got, want, near * std::abs(want))
            << "item " << i << ", request " << c << ", scheme " << w;
      }
}

TEST_F(ItemLaw, PassesAndThreadsChangeNoBit) {
  const std::vector<EvalWindow> windows = windows_of(make_items());
  const Outcome whole = sweep(windows, 100000, 1), cut = sweep(windows, 210, 2);
  ASSERT_EQ(whole.answers.size(), cut.answers.size());
  for (std::size_t i = 0; i < whole.answers.size(); ++i)
    EXPECT_EQ(whole.answers[i].answer.loglikelihood, cut.answers[i].answer.loglikelihood) << i;
}

TEST_F(ItemLaw, TextsAreMeasuredAsIfThereWereNoItems) {
  SplitMix64 random(8);
  std::vector<EvalWindow> text =
      windows_of_ids({random_ids(90, random), random_ids(90, random), random_ids(90, random)}, Protocol{});
  const Outcome without = sweep(text, 0);
  for (EvalWindow& window : windows_of(make_items())) text.push_back(std::move(window));
  const Outcome with = sweep(text, 400);
  EXPECT_EQ(with.layers, without.layers);
  ASSERT_EQ(with.scores.size(), without.scores.size());
  for (std::size_t i = 0; i < with.scores.size(); ++i)
    EXPECT_EQ(with.scores[i].pack_tokens(), without.scores[i].pack_tokens()) << i;
  EXPECT_EQ(with.peaks.size(), without.peaks.size());
}

// Greedy decoding of the reference, found token by token, is what `greedy` says.
TEST_F(ItemLaw, GreedyIsWhatDecodingWouldGive) {
  SplitMix64 random(9);
  const std::vector<std::int32_t> context = random_ids(12, random);
  TaskItem every;  // all one-token continuations: exactly one is greedy, the likeliest
  for (std::int32_t id = 0; id < kVocab; ++id) every.requests.push_back({context, {id}});
  const ItemAnswer answer = sweep(windows_of({every}), 100000).answers[0].answer;
  const auto best =
      static_cast<std::int32_t>(std::max_element(answer.loglikelihood.begin(), answer.loglikelihood.end()) -
                                answer.loglikelihood.begin());
  double mass = 0;
  for (std::int32_t id = 0; id < kVocab; ++id) {
    EXPECT_EQ(answer.greedy[static_cast<std::size_t>(id)], id == best) << id;
    mass += std::exp(answer.loglikelihood[static_cast<std::size_t>(id)]);
  }
  EXPECT_NEAR(mass, 1, 1e-5);
}

}  // namespace
}  // namespace quantmap
