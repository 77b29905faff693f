// Segments are parts of the whole, scored as the whole is.
#include "evals/segment_scores.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "make_scores.hpp"

namespace quantmap {
namespace {

using namespace testing;

using Labels = std::vector<std::vector<std::uint32_t>>;

Labels labels_of(const std::vector<WindowScores>& windows, std::uint32_t kinds) {
  Labels labels;
  for (const WindowScores& w : windows) {
    auto& one = labels.emplace_back();
    for (std::int64_t t = 0; t < w.tokens(); ++t)
      one.push_back(static_cast<std::uint32_t>(t + w.window) % kinds);
  }
  return labels;
}

TEST(SegmentScores, OfOneLabelAreTheWhole) {
  const auto reference = random_windows(25, 30, 41), scheme = random_windows(25, 30, 42);
  const Labels labels = labels_of(scheme, 1);
  const ScoreSummary whole = summarize(scheme, reference);
  const ScoreSummary part =
      summarize(scores_of_segment(scheme, labels, 0), scores_of_segment(reference, labels, 0));
  EXPECT_EQ(part.tokens, whole.tokens);
  EXPECT_EQ(part.windows, whole.windows);
  EXPECT_NEAR(*part.nll, *whole.nll, 1e-6 * *whole.nll);
  EXPECT_NEAR(*part.kl_mean, *whole.kl_mean, 1e-6 * *whole.kl_mean);
  EXPECT_NEAR(*part.kl_stderr, *whole.kl_stderr, 1e-5 * *whole.kl_stderr);
  EXPECT_NEAR(*part.kl_max, *whole.kl_max, 1e-6);
  EXPECT_EQ(part.top1_agreement, whole.top1_agreement);
  EXPECT_EQ(part.margin_flips, whole.margin_flips);
}

TEST(SegmentScores, AddUpToTheWhole) {
  const auto scheme = random_windows(25, 31, 43);
  const Labels labels = labels_of(scheme, 3);
  std::vector<WindowScores> parts[3];
  for (std::uint32_t s = 0; s < 3; ++s) parts[s] = scores_of_segment(scheme, labels, s);
  for (std::size_t w = 0; w < scheme.size(); ++w) {
    std::int64_t tokens = 0, top1 = 0, flips = 0;
    double nll = 0, kl = 0;
    for (const auto& part : parts) {
      tokens += part[w].tokens();
      top1 += part[w].top1_sum;
      flips += part[w].margin_flips;
      nll += part[w].nll_sum;
      kl += part[w].kl_sum;
    }
    EXPECT_EQ(tokens, scheme[w].tokens());
    EXPECT_EQ(top1, scheme[w].top1_sum);
    EXPECT_EQ(flips, scheme[w].margin_flips);
    EXPECT_NEAR(nll, scheme[w].nll_sum, 1e-6 * scheme[w].nll_sum);
    EXPECT_NEAR(kl, scheme[w].kl_sum, 1e-6 * scheme[w].kl_sum);
  }
}

TEST(SegmentScores, WindowsWithoutTheLabelAreLeftOut) {
  const auto scheme = random_windows(4, 10, 44);
  Labels labels = labels_of(scheme, 1);
  labels[2].assign(10, 7);
  EXPECT_EQ(scores_of_segment(scheme, labels, 0).size(), 3U);
  EXPECT_EQ(scores_of_segment(scheme, labels, 7).size(), 1U);
  EXPECT_TRUE(scores_of_segment(scheme, labels, 3).empty());
  labels[0].pop_back();
  EXPECT_THROW(scores_of_segment(scheme, labels, 0), Error);
}

}  // namespace
}  // namespace quantmap
