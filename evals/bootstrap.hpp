// A block bootstrap of a mean over windows: the check of the analytic intervals, which lean on the window
// sums being near enough to normal. Windows are resampled whole (tokens of one window are not independent),
// in blocks of neighbours on a circle where a text's windows depend on each other (Politis and Romano 1992,
// "A circular block-resampling procedure for stationary data"); a block of one window is the cluster
// bootstrap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "evals/scores.hpp"
#include "evals/student_t.hpp"

namespace quantmap {

struct BootstrapOptions {
  std::uint64_t seed = 0;
  std::int64_t resamples = 2000;
  std::int64_t block = 1;  // windows, at least 1; more than there are: all of them
};

// The ratio estimate sum / count of each resample. Which windows are drawn depends on the options and the
// number of windows alone, so the difference of two schemes' means is the mean of their paired difference.
// Empty for fewer than two windows. Resamples that count nothing are NaN.
std::vector<double> bootstrap_means(std::span<const Cluster> windows, const BootstrapOptions& options = {});

// Percentile interval (Efron 1979): quantiles by linear interpolation at f (n - 1) of the sorted values.
// Undefined where there are none, or one is not finite.
Interval percentile_interval(std::vector<double> means, double confidence = kConfidence);

}  // namespace quantmap
