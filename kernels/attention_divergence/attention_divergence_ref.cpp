#include <algorithm>
#include <cmath>
#include <vector>

#include "formats/bf16.hpp"
#include "kernels/attention_divergence/attention_divergence.hpp"

namespace quantmap {
namespace {

double score(const AttentionInput& in, std::int64_t t, std::int64_t h, std::int64_t u) {
  const float* q = in.q + t * in.q_stride + h * in.head_dim;
  double sum = 0;
  for (std::int64_t c = 0; c < in.head_dim; ++c) {
    const std::int64_t i = u * in.head_dim + c;
    if (in.type == OperandType::f32)
      sum += double{q[c]} * double{static_cast<const float*>(in.k)[i]};
    else
      sum +=
          double{round_to_bf16(q[c])} * double{float_from_bf16(static_cast<const std::uint16_t*>(in.k)[i])};
  }
  if (in.k_scale_count > 0) sum *= in.k_scale[in.k_scale_count == 1 ? 0 : u];
  return sum * in.scale;
}

// Natural logarithms of the weights over [first, t].
std::vector<double> log_weights(const AttentionInput& in, std::int64_t t, std::int64_t h,
                                std::int64_t first) {
  std::vector<double> logs;
  for (std::int64_t u = first; u <= t; ++u) logs.push_back(score(in, t, h, u));
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double value : logs) sum += std::exp(value - largest);
  for (double& value : logs) value -= largest + std::log(sum);
  return logs;
}

}  // namespace

void attention_divergence_ref(const AttentionInput& reference, const AttentionInput& other, double* kl) {
  for (std::int64_t t = 0; t < reference.tokens; ++t)
    for (std::int64_t h = 0; h < reference.group; ++h) {
      const std::int64_t first =
          reference.window > 0 ? std::max<std::int64_t>(0, t - reference.window + 1) : 0;
      const std::vector<double> p = log_weights(reference, t, h, first), q = log_weights(other, t, h, first);
      double sum = 0;
      for (std::size_t u = 0; u < p.size(); ++u) sum += std::exp(p[u]) * (p[u] - q[u]);
      kl[t * reference.group + h] = sum;
    }
}

}  // namespace quantmap
