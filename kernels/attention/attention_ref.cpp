#include <algorithm>
#include <cmath>
#include <vector>

#include "formats/bf16.hpp"
#include "kernels/attention/attention.hpp"

namespace quantmap {

void attention_ref(const AttentionInput& in) {
  const auto at = [&](const void* data, std::int64_t i) -> double {
    return in.type == OperandType::f32 ? static_cast<const float*>(data)[i]
                                       : float_from_bf16(static_cast<const std::uint16_t*>(data)[i]);
  };
  std::vector<double> p(static_cast<std::size_t>(in.tokens));
  std::vector<float> row(static_cast<std::size_t>(in.head_dim));
  // From the last token down, so that out may be q.
  for (std::int64_t t = in.tokens - 1; t >= in.first_query; --t)
    for (std::int64_t h = 0; h < in.group; ++h) {
      const float* q = in.q + t * in.q_stride + h * in.head_dim;
      const std::int64_t first = in.window > 0 ? std::max<std::int64_t>(0, t - in.window + 1) : 0;
      double largest = -INFINITY, sum = 0;
      for (std::int64_t u = first; u <= t; ++u) {
        double score = 0;
        for (std::int64_t c = 0; c < in.head_dim; ++c) {
          const double query = in.type == OperandType::f32 ? q[c] : round_to_bf16(q[c]);
          score += query * at(in.k, u * in.head_dim + c);
        }
        if (in.k_scale_count > 0) score *= in.k_scale[in.k_scale_count == 1 ? 0 : u];
        p[static_cast<std::size_t>(u)] = score * in.scale;
        largest = std::max(largest, p[static_cast<std::size_t>(u)]);
      }
      for (std::int64_t u = first; u <= t; ++u) {
        p[static_cast<std::size_t>(u)] = std::exp(p[static_cast<std::size_t>(u)] - largest);
        sum += p[static_cast<std::size_t>(u)];
      }
      for (std::int64_t c = 0; c < in.head_dim; ++c) {
        double value = 0;
        for (std::int64_t u = first; u <= t; ++u)
          value += p[static_cast<std::size_t>(u)] * at(in.v, u * in.head_dim + c);
        row[static_cast<std::size_t>(c)] = static_cast<float>(value / sum * in.v_scale);
      }
      std::copy(row.begin(), row.end(), in.out + t * in.out_stride + h * in.head_dim);
    }
}

}  // namespace quantmap
