// Windows of token scores to summarize.
#pragma once

#include <limits>
#include <vector>

#include "core/random.hpp"
#include "evals/scores.hpp"

namespace quantmap::testing {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

// One window whose tokens have these NLLs and nothing else, weighted by their count.
inline WindowScores nll_window(std::int64_t window, const std::vector<double>& nll) {
  WindowScores w;
  w.window = window;
  w.weight = static_cast<double>(nll.size());
  for (const double value : nll) w.add({value, 0, 0, 0, true, false});
  return w;
}

inline std::vector<WindowScores> random_windows(std::int64_t windows, std::int64_t tokens,
                                                std::uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<WindowScores> result;
  for (std::int64_t i = 0; i < windows; ++i) {
    WindowScores w;
    w.scheme = 1;
    w.window = i;
    w.weight = static_cast<double>(tokens);
    w.reserve(tokens);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const bool agrees = random.uniform() < 0.9;
      w.add({5 * random.uniform(), random.uniform(), random.uniform(), random.uniform() - 0.5, agrees,
             !agrees && random.uniform() < 0.3});
    }
    result.push_back(std::move(w));
  }
  return result;
}

}  // namespace quantmap::testing
