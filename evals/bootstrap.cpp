#include "evals/bootstrap.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.hpp"
#include "core/sum.hpp"

namespace quantmap {
namespace {

double quantile_of(std::span<const double> sorted, double f) {
  const double at = f * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const double low = sorted[below], high = sorted[std::min(below + 1, sorted.size() - 1)];
  return low + (high - low) * (at - std::floor(at));
}

}  // namespace

std::vector<double> bootstrap_means(std::span<const Cluster> windows, const BootstrapOptions& options) {
  const std::size_t count = windows.size();
  std::vector<double> means;
  if (count < 2) return means;
  const std::size_t block = std::clamp<std::size_t>(static_cast<std::size_t>(options.block), 1, count);
  SplitMix64 random(options.seed);
  for (std::int64_t resample = 0; resample < options.resamples; ++resample) {
    Sum sum, weight;
    for (std::size_t taken = 0; taken < count; taken += block) {
      // The last block is cut, so that every resample has as many windows as the data.
      const std::size_t length = std::min(block, count - taken);
      // A bias below count / 2^53; uniform() may round to 1.
      const auto first =
          std::min(static_cast<std::size_t>(random.uniform() * static_cast<double>(count)), count - 1);
      for (std::size_t i = 0; i < length; ++i) {
        const Cluster& window = windows[(first + i) % count];
        sum.add(window.sum);
        weight.add(window.count);
      }
    }
    means.push_back(weight.value() > 0 ? sum.value() / weight.value()
                                       : std::numeric_limits<double>::quiet_NaN());
  }
  return means;
}

Interval percentile_interval(std::vector<double> means, double confidence) {
  if (means.empty() || !std::all_of(means.begin(), means.end(), [](double m) { return std::isfinite(m); }))
    return {};
  std::sort(means.begin(), means.end());
  return {quantile_of(means, (1 - confidence) / 2), quantile_of(means, (1 + confidence) / 2)};
}

}  // namespace quantmap
