#include <algorithm>
#include <cmath>
#include <vector>

#include "core/sum.hpp"
#include "kernels/divergence/divergence.hpp"

namespace quantmap {
namespace {

// ln softmax in double.
std::vector<double> log_softmax(const float* logits, std::int64_t count) {
  const double largest = *std::max_element(logits, logits + count);
  Sum sum;
  for (std::int64_t v = 0; v < count; ++v) sum.add(std::exp(logits[v] - largest));
  std::vector<double> result(static_cast<std::size_t>(count));
  for (std::int64_t v = 0; v < count; ++v)
    result[static_cast<std::size_t>(v)] = logits[v] - largest - std::log(sum.value());
  return result;
}

}  // namespace

TokenScore compare_ref(const float* logits, std::int64_t count, std::int64_t target,
                       const float* reference_logits) {
  const std::vector<double> q = log_softmax(logits, count), p = log_softmax(reference_logits, count);
  TokenScore score;
  Sum kl, tv;
  bool infinite = false;
  for (std::size_t v = 0; v < q.size(); ++v) {
    // A masked token counts as 0; NaN must pass. The compensated sum cannot take an infinite term.
    const double term = p[v] == -INFINITY ? 0.0 : std::exp(p[v]) * (p[v] - q[v]);
    if (std::isinf(term))
      infinite = true;
    else
      kl.add(term);
    tv.add(std::abs(std::exp(p[v]) - std::exp(q[v])));
  }
  const auto t = static_cast<std::size_t>(target);
  score.nll = -q[t];
  score.kl = infinite ? INFINITY : kl.value();
  score.tv = tv.value() / 2;
  score.delta_p = std::exp(q[t]) - std::exp(p[t]);
  const auto top_q = std::max_element(logits, logits + count) - logits;
  const auto top_p = std::max_element(reference_logits, reference_logits + count) - reference_logits;
  score.top1 = top_q == top_p;
  score.greedy = top_q == target && !std::isnan(score.nll);
  if (!score.top1) {
    std::vector<double> sorted(p);
    std::partial_sort(sorted.begin(), sorted.begin() + 2, sorted.end(), std::greater<>());
    score.margin_flip = std::exp(sorted[0]) - std::exp(sorted[1]) > kMarginFlipLead;
  }
  return score;
}

}  // namespace quantmap
