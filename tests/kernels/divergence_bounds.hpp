// How far divergence in FP32 exponentials may be from its reference in double.
#pragma once

#include <algorithm>

#include "kernels/inputs.hpp"

namespace quantmap::testing {

// What FP32 exponentials may do to a distribution: a weight exp(d), d = logit - largest, is wrong by the
// factor 1 + |d| units (the difference is rounded) + 2 units (1 ulp of exp), and by half of 2^-149.
struct Softmax {
  std::vector<double> p, error;  // probabilities, relative error of each weight
  double mean_error = 0;         // of the sum
  explicit Softmax(const std::vector<float>& logits) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float x : logits) {
      p.push_back(std::exp(x - largest));
      // A masked logit's weight is 0 exactly.
      error.push_back(std::isinf(x) ? 0.0 : (std::abs(x - largest) + 2) * kUnit);
      sum += p.back();
    }
    for (std::size_t i = 0; i < p.size(); ++i) {
      p[i] /= sum;
      if (p[i] > 0) mean_error += p[i] * error[i];
    }
    mean_error += static_cast<double>(logits.size()) * kSubnormal;
  }
};
struct Bounds {
  double nll, kl, tv, delta_p, p_target, lead, reference_nll;
};
inline Bounds bounds(const std::vector<float>& p_logits, const std::vector<float>& q_logits,
                     std::int64_t target) {
  const Softmax p(p_logits), q(q_logits);
  const auto t = static_cast<std::size_t>(target);
  constexpr double kDouble = 0x1p-50;  // sums in double, a few operations
  const auto size = [](const std::vector<float>& x) {
    double most = 0;
    for (const float v : x) most = std::max(most, std::isfinite(v) ? std::abs(double{v}) : 0.0);
    return most;
  };
  Bounds b{};
  b.nll = q.mean_error + kDouble * (1 + size(q_logits));
  b.reference_nll = p.mean_error + kDouble * (1 + size(p_logits));
  double worst = 0;  // of p * error: the top has error 2 units, the second this at most
  for (std::size_t i = 0; i < p.p.size(); ++i)
    if (p.p[i] > 0) worst = std::max(worst, p.p[i] * p.error[i]);
  b.lead = worst + 2 * kUnit + p.mean_error + kSubnormal;
  b.p_target = p.p[t] * (p.error[t] + p.mean_error) + kSubnormal;
  b.delta_p = q.p[t] * (q.error[t] + q.mean_error) + b.p_target + kDouble;
  double mean_gap = 0;
  for (std::size_t i = 0; i < p.p.size(); ++i) {
    const double gap = std::abs(double{p_logits[i]} - double{q_logits[i]});
    if (p.p[i] > 0 && std::isfinite(gap)) {
      b.kl += p.p[i] * gap * (p.error[i] + kUnit);
      mean_gap += p.p[i] * gap;
    }
    // Weight, its factor (rounded once) and their product on both sides, and the difference.
    if (p.p[i] > 0) b.tv += p.p[i] * (p.error[i] + p.mean_error + 3 * kUnit) / 2;
    if (q.p[i] > 0) b.tv += q.p[i] * (q.error[i] + q.mean_error + 3 * kUnit) / 2;
  }
  const auto count = static_cast<double>(p.p.size());
  b.kl += mean_gap * p.mean_error + p.mean_error + q.mean_error;
  b.kl += count * kSubnormal * size(p_logits) + kDouble * (1 + size(p_logits) + size(q_logits));
  b.tv += count * kSubnormal + kDouble;
  return b;
}

}  // namespace quantmap::testing
