#include "evals/comparison.hpp"

#include <algorithm>
#include <limits>

#include "evals/bootstrap.hpp"
#include "evals/holm.hpp"

namespace quantmap {
namespace {

using Means = std::vector<double>;

Interval interval_of_difference(const Means& scheme, const Means& than) {
  Means difference;
  for (std::size_t i = 0; i < std::min(scheme.size(), than.size()); ++i)
    difference.push_back(scheme[i] - than[i]);
  return percentile_interval(std::move(difference));
}

// Verdicts of one metric's pairs, each adjusted for the others.
void judge(std::span<Comparison> pairs) {
  std::vector<Number> p;
  for (const Comparison& pair : pairs) p.push_back(pair.d.p);
  const std::vector<HolmTest> tests = holm(p);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    Comparison& pair = pairs[i];
    pair.p_holm = tests[i].p;
    pair.verdict = verdict_of(pair.d, pair.p_holm);
    if (pair.verdict == Verdict::not_distinguishable)
      pair.more_windows = windows_to_settle(pair.d, 1 - (1 - kConfidence) / tests[i].tests_left);
  }
}

void compare_metric(std::span<const SchemeWindows> schemes, std::string_view metric,
                    std::vector<Cluster> SchemeWindows::*windows, const BootstrapOptions& options,
                    std::vector<Comparison>& all) {
  std::vector<Means> means;
  for (const SchemeWindows& scheme : schemes) means.push_back(bootstrap_means(scheme.*windows, options));
  std::vector<Comparison> pairs;
  for (std::size_t i = 0; i < schemes.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (windows == &SchemeWindows::kl && schemes[j].scheme == 0) continue;
      Comparison pair;
      pair.scheme = schemes[i].scheme;
      pair.than = schemes[j].scheme;
      pair.metric = metric;
      pair.d = paired_difference(schemes[i].*windows, schemes[j].*windows);
      pair.bootstrap = interval_of_difference(means[i], means[j]);
      pairs.push_back(pair);
    }
  judge(pairs);
  all.insert(all.end(), pairs.begin(), pairs.end());
}

}  // namespace

SchemeWindows scheme_windows(std::int64_t scheme, std::span<const WindowScores> scores) {
  SchemeWindows windows;
  windows.scheme = scheme;
  for (const WindowScores& window : scores) {
    const auto n = static_cast<double>(window.tokens());
    if (n == 0) continue;
    windows.nll.push_back({window.nll_sum * (window.weight / n), window.weight});
    windows.kl.push_back(
        {window.kl_infinite > 0 ? std::numeric_limits<double>::infinity() : window.kl_sum, n});
  }
  return windows;
}

std::vector<Comparison> compare_schemes(std::span<const SchemeWindows> schemes, std::uint64_t seed) {
  std::vector<Comparison> all;
  const BootstrapOptions options{.seed = seed};
  compare_metric(schemes, "ln_ppl_ratio", &SchemeWindows::nll, options, all);
  compare_metric(schemes, "kl_mean", &SchemeWindows::kl, options, all);
  return all;
}

std::vector<Comparison> compare_pairs(std::string_view metric, std::span<const ClusterPair> pairs,
                                      std::uint64_t seed) {
  std::vector<Comparison> all;
  for (const auto& [scheme, than, paired] : pairs) {
    Comparison& one = all.emplace_back();
    one.metric = metric;
    one.d = paired ? paired_difference(scheme, than) : unpaired_difference(scheme, than);
    // Other windows are drawn for the second run where they are not the same ones.
    one.bootstrap = interval_of_difference(bootstrap_means(scheme, {.seed = seed}),
                                           bootstrap_means(than, {.seed = paired ? seed : seed + 1}));
  }
  judge(all);
  return all;
}

}  // namespace quantmap
