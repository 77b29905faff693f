// Every two schemes of a sweep, compared on the same windows: ln-PPL ratio (the reference among them) and KL
// (without it: its KL is 0 by definition). Positive: `scheme` is worse than `than`.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "evals/paired_difference.hpp"

namespace quantmap {

// A scheme's window sums, as the metrics' ratio estimators take them.
struct SchemeWindows {
  std::int64_t scheme = 0;       // position: 0 is the reference
  std::vector<Cluster> nll, kl;  // weighted as summarize() does; a window with an infinite KL is infinite
};
SchemeWindows scheme_windows(std::int64_t scheme, std::span<const WindowScores> scores);

struct Comparison {
  std::int64_t scheme = 0, than = 0;
  std::string_view metric;  // `ln_ppl_ratio`: mean NLL of scheme less that of than; `kl_mean`: KL less KL
  Difference d;
  Interval bootstrap;                    // 95 %, percentile, of the same difference: the check of d.interval
  Number p_holm;                         // d.p, adjusted for all pairs of this metric
  Verdict verdict = Verdict::undefined;  // by p_holm
  Number more_windows;  // where not distinguishable: how many more would settle it at Holm's level
};
// Pairs in the order of positions, `scheme` after `than`; all of ln_ppl_ratio first. Error if windows differ.
std::vector<Comparison> compare_schemes(std::span<const SchemeWindows> schemes, std::uint64_t seed);
// A metric's windows of one scheme in two runs, `scheme` in the later. paired: the same windows in both.
struct ClusterPair {
  std::span<const Cluster> scheme, than;
  bool paired = true;
};
// One each, in order; p_holm is over these pairs. Comparison::scheme and than are left 0.
std::vector<Comparison> compare_pairs(std::string_view metric, std::span<const ClusterPair> pairs,
                                      std::uint64_t seed);

}  // namespace quantmap
