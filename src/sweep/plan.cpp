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

void require_least(std::int64_t least, std::int64_t memory, std::int64_t longest, std::int64_t schemes) {
  if (least > memory)
    fail_usage(
        "--memory",
        fmt::format("{} is too little for one window of {} tokens and {} schemes: the least possible is {}M",
                    format_size(memory), longest, schemes, (least + (1 << 20) - 1) >> 20));
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
  require_least(plan.least_bytes, memory, limits_of(windows, 1).longest_window, schemes);
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

std::int64_t pass_end(const std::vector<EvalWindow>& windows, std::int64_t first, const SweepPlan& plan) {
  const auto total = static_cast<std::int64_t>(windows.size());
  if (plan.tokens_per_pass == 0) return std::min(total, first + plan.windows_per_pass);
  std::int64_t end = first, tokens = 0;
  while (end < total) {
    tokens += static_cast<std::int64_t>(windows[static_cast<std::size_t>(end)].ids.size());
    if (tokens > plan.tokens_per_pass && end > first) break;
    ++end;
  }
  return end;
}

std::int64_t count_passes(const std::vector<EvalWindow>& windows, std::int64_t first, const SweepPlan& plan) {
  std::int64_t passes = 0;
  for (; first < static_cast<std::int64_t>(windows.size()); first = pass_end(windows, first, plan)) ++passes;
  return passes;
}

namespace {

// Passes of a number of tokens. bytes_for grows with it.
SweepPlan plan_tokens(const std::vector<EvalWindow>& windows, std::int64_t schemes, std::int64_t memory,
                      const std::function<std::int64_t(std::int64_t tokens)>& bytes_for) {
  std::int64_t total = 0;
  for (const EvalWindow& window : windows) total += static_cast<std::int64_t>(window.ids.size());
  const std::int64_t longest = limits_of(windows, 1).longest_window;
  SweepPlan plan;
  plan.least_bytes = bytes_for(longest);
  require_least(plan.least_bytes, memory, longest, schemes);
  const auto largest = [](std::int64_t good, std::int64_t beyond, const auto& fits) {
    while (beyond - good > 1) {
      const std::int64_t middle = good + (beyond - good) / 2;
      (fits(middle) ? good : beyond) = middle;
    }
    return good;
  };
  const auto with = [](std::int64_t tokens) {
    SweepPlan of;
    of.tokens_per_pass = tokens;
    return of;
  };
  const std::int64_t most =
      largest(longest, total + 1, [&](std::int64_t n) { return bytes_for(n) <= memory; });
  plan.passes = count_passes(windows, 0, with(most));
  // Passes of even size: the fewest tokens that need no more passes.
  plan.tokens_per_pass = most - largest(0, most - longest + 1, [&](std::int64_t n) {
                           return count_passes(windows, 0, with(most - n)) == plan.passes;
                         });
  for (std::int64_t first = 0; first < static_cast<std::int64_t>(windows.size());) {
    const std::int64_t end = pass_end(windows, first, plan);
    plan.windows_per_pass = std::max(plan.windows_per_pass, end - first);
    first = end;
  }
  plan.bytes = bytes_for(plan.tokens_per_pass);
  return plan;
}

}  // namespace

SweepPlan plan_sweep(const Checkpoint& checkpoint, const std::vector<Walker>& walkers,
                     const std::vector<EvalWindow>& windows, std::int64_t memory) {
  require_whole_blocks(walkers, checkpoint.config());
  const auto count = static_cast<std::int64_t>(walkers.size());
  const int threads = thread_count();
  if (!windows.empty() && windows.back().is_item()) {
    // Texts are of one length but for the last; items need no sums.
    const std::int64_t text =
        windows.front().is_item() ? 0 : static_cast<std::int64_t>(windows.front().ids.size());
    const std::int64_t longest = limits_of(windows, 1).longest_window;
    return plan_tokens(windows, count - 1, memory, [&](std::int64_t tokens) {
      const PassLimits limits{tokens, longest};
      return Forward::bytes_needed(checkpoint, walkers, limits, threads) +
             own_bytes(checkpoint, count, text > 0 ? tokens / text + 1 : 0, limits, threads);
    });
  }
  return plan_passes(windows, count - 1, memory, [&](std::int64_t n) {
    const PassLimits limits = limits_of(windows, n);
    return Forward::bytes_needed(checkpoint, walkers, limits, threads) +
           own_bytes(checkpoint, count, n, limits, threads);
  });
}

}  // namespace quantmap
