#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/size.hpp"
#include "model/scheme_fit.hpp"
#include "sweep/plan.hpp"
#include "sweep/sweep.hpp"

namespace quantmap {
namespace {

std::int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string key;
    std::int64_t kib = 0;
    if (words >> key >> kib && key == "MemAvailable:") return kib * 1024;
  }
  return std::int64_t{2} << 30;
}

// What the sweep keeps besides the forward pass: scores of a pass, error sums (the run's, and one a window
// while a layer is measured), peaks, and a copy of the residual stream of one window for its median on each
// thread.
std::int64_t own_bytes(const Checkpoint& checkpoint, std::int64_t walkers, std::int64_t windows,
                       const PassLimits& limits, int threads) {
  const ModelConfig& c = checkpoint.config();
  // Row slots, vectors of numbers, and the same packed for the store.
  const std::int64_t scores =
      walkers * limits.tokens * static_cast<std::int64_t>(sizeof(TokenScore) + 2 * 17);
  const std::int64_t sums = walkers * (3 * c.layers + windows) * static_cast<std::int64_t>(sizeof(ErrorSums));
  const std::int64_t peaks = windows * c.layers * static_cast<std::int64_t>(sizeof(LayerPeak));
  return scores + sums + peaks + threads * limits.longest_window * c.hidden_size * 4;
}

}  // namespace

std::int64_t default_memory() { return std::min(available_memory() * 6 / 10, std::int64_t{4} << 30); }

PassLimits limits_of(const std::vector<EvalWindow>& windows, std::int64_t count) {
  PassLimits limits;
  std::vector<std::int64_t> lengths;
  for (const EvalWindow& window : windows) lengths.push_back(static_cast<std::int64_t>(window.ids.size()));
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  limits.longest_window = lengths.front();
  for (std::int64_t i = 0; i < count && i < static_cast<std::int64_t>(lengths.size()); ++i)
    limits.tokens += lengths[static_cast<std::size_t>(i)];
  return limits;
}

SweepPlan plan_passes(const std::vector<EvalWindow>& windows, std::int64_t schemes, std::int64_t memory,
                      const std::function<std::int64_t(std::int64_t)>& bytes_for) {
  const auto total = static_cast<std::int64_t>(windows.size());
  SweepPlan plan;
  plan.least_bytes = bytes_for(1);
  if (plan.least_bytes > memory)
    fail_usage(
        "--memory",
        fmt::format("{} is too little for one window of {} tokens and {} schemes: the least possible is {}M",
                    format_size(memory), limits_of(windows, 1).longest_window, schemes,
                    (plan.least_bytes + (1 << 20) - 1) >> 20));
  std::int64_t fits = 1, beyond = total + 1;
  while (beyond - fits > 1) {
    const std::int64_t middle = fits + (beyond - fits) / 2;
    (bytes_for(middle) <= memory ? fits : beyond) = middle;
  }
  plan.windows_per_pass = fits;
  plan.passes = (total + fits - 1) / fits;
  // Passes of even size, so that the last is not a small rest.
  plan.windows_per_pass = (total + plan.passes - 1) / plan.passes;
  plan.bytes = bytes_for(plan.windows_per_pass);
  return plan;
}

SweepPlan plan_sweep(const Checkpoint& checkpoint, const std::vector<Walker>& walkers,
                     const std::vector<EvalWindow>& windows, std::int64_t memory) {
  require_whole_blocks(walkers, checkpoint.config());
  const auto count = static_cast<std::int64_t>(walkers.size());
  const int threads = thread_count();
  return plan_passes(windows, count - 1, memory, [&](std::int64_t n) {
    const PassLimits limits = limits_of(windows, n);
    return Forward::bytes_needed(checkpoint, walkers, limits, threads) +
           own_bytes(checkpoint, count, n, limits, threads);
  });
}

}  // namespace quantmap
