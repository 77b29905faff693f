// Token scores of one scheme in one window, their sums, and what a run makes of them (product.md, `eval`).
// Sums are in double over the window's scored tokens in order; totals are sums over windows in order, so they
// do not depend on passes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/number.hpp"
#include "evals/student_t.hpp"
#include "kernels/divergence/divergence.hpp"

namespace quantmap {

struct WindowScores {
  std::int64_t scheme = 0;  // position: 0 is the reference
  std::int64_t window = 0;
  double weight = 0;  // of the window's mean NLL (EvalWindow::weight)
  // Per scored token, in order.
  std::vector<float> nll, kl, tv, delta_p;
  std::vector<std::uint8_t> top1;  // 1: agrees, 0: not, 2: not, where the reference led by more than 0.1
  // Sums over tokens. Tokens whose KL is infinite are counted and left out of kl and kl2; a NaN makes its sum
  // NaN.
  double nll_sum = 0, nll2_sum = 0, kl_sum = 0, kl2_sum = 0, kl_max = 0, tv_sum = 0, delta_p_sum = 0,
         delta_p2_sum = 0;
  std::int64_t top1_sum = 0, margin_flips = 0, kl_infinite = 0;

  std::int64_t tokens() const { return static_cast<std::int64_t>(nll.size()); }
  void reserve(std::int64_t tokens);
  void add(const TokenScore& token);

  std::string pack_tokens() const;
  std::string pack_sums() const;
  static WindowScores unpack(std::int64_t scheme, std::int64_t window, std::string_view tokens,
                             std::string_view sums);
};

struct ScoreSummary {
  std::int64_t tokens = 0, windows = 0;
  Number nll, nll_stderr, ppl, ppl_stderr, ln_ppl_ratio, ln_ppl_ratio_stderr;
  Number kl_mean, kl_stderr, kl_p50, kl_p90, kl_p99, kl_p999, kl_max;
  std::int64_t kl_infinite = 0;
  Number tv_mean, top1_agreement, top1_stderr;
  std::int64_t margin_flips = 0;
  Number delta_p_mean, delta_p_rms;
  Number nll_stderr_iid, ppl_stderr_iid, kl_stderr_iid;  // as llama.cpp takes them
  // 95 % by Student's t of windows - 1 degrees, cut off where the metric ends; ppl: e to that of nll.
  Interval ppl_interval, ln_ppl_ratio_interval, kl_interval, top1_interval;
  std::string status = "ok";
  std::vector<std::string> notes;
};
// All windows of one scheme and of the reference, in window order, the same tokens in both.
ScoreSummary summarize(std::span<const WindowScores> scheme, std::span<const WindowScores> reference);

// Standard error of a mean over tokens that are clustered in windows (formats.md, section 11): C/(C-1) times
// the sum over windows of (window sum - window count * mean)^2, over n^2. Empty for fewer than two windows.
struct Cluster {
  double sum = 0;
  double count = 0;
};
Number clustered_stderr(std::span<const Cluster> windows);

// Quantile by linear interpolation at f (n-1) of the sorted values; empty where fewer than 50 values lie
// beyond it on the thinner side.
Number exact_quantile(std::span<const float> sorted, double f);

}  // namespace quantmap
