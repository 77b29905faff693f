// Inputs of attention, and how far it may be from its reference.
#pragma once

#include "kernels/attention/attention.hpp"
#include "kernels/inputs.hpp"

namespace quantmap::testing {

enum class KeyScales { none, one, per_token };

struct Case {
  OperandType type = OperandType::f32;
  std::int64_t tokens = 0, window = 0, group = 1, head_dim = 0;
  KeyScales key_scales = KeyScales::none;
  float v_scale = 1;
  std::string name() const {
    return std::string(type == OperandType::f32 ? "f32" : "bf16") + ", tokens " + std::to_string(tokens) +
           ", window " + std::to_string(window) + ", group " + std::to_string(group) + ", head_dim " +
           std::to_string(head_dim) + ", key scales " + std::to_string(static_cast<int>(key_scales));
  }
};

// All that one call reads and writes. Rows of q and out are wider than their heads.
struct Problem {
  Case c;
  std::int64_t q_stride, out_stride;
  std::vector<float> q, k, v, k_scale;  // k and v widened
  std::vector<std::uint16_t> k_bits, v_bits;

  Problem(const Case& given, const InputClass& q_kind, const InputClass& k_kind, const InputClass& v_kind)
      : c(given), q_stride(c.group * c.head_dim + 5), out_stride(c.group * c.head_dim + 3) {
    q = make_input(q_kind, c.tokens * q_stride, 1);
    k = make_input(k_kind, c.tokens * c.head_dim, 2);
    v = make_input(v_kind, c.tokens * c.head_dim, 3);
    if (c.key_scales == KeyScales::one) k_scale = {0.37F};
    if (c.key_scales == KeyScales::per_token) {
      SplitMix64 random(4);
      for (std::int64_t t = 0; t < c.tokens; ++t)
        k_scale.push_back(static_cast<float>(0.1 + 2 * random.uniform()));
    }
    round_operands();
  }
  void round_operands() {
    if (c.type == OperandType::f32) return;
    k_bits = as_bf16(k);
    v_bits = as_bf16(v);
    for (std::size_t i = 0; i < k.size(); ++i)
      k[i] = float_from_bf16(k_bits[i]), v[i] = float_from_bf16(v_bits[i]);
  }
  AttentionInput input(const float* queries, std::int64_t stride, float* out, std::int64_t to_stride) const {
    const bool f32 = c.type == OperandType::f32;
    return {.type = c.type,
            .tokens = c.tokens,
            .group = c.group,
            .head_dim = c.head_dim,
            .window = c.window,
            .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim))),
            .q = queries,
            .q_stride = stride,
            .k = f32 ? static_cast<const void*>(k.data()) : k_bits.data(),
            .v = f32 ? static_cast<const void*>(v.data()) : v_bits.data(),
            .k_scale = k_scale.empty() ? nullptr : k_scale.data(),
            .k_scale_count = static_cast<std::int64_t>(k_scale.size()),
            .v_scale = c.v_scale,
            .out = out,
            .out_stride = to_stride};
  }
};

// What rounding may do to each output. A score is wrong by delta = (head_dim + 4) units of scale * sum
// |q||k|, so a probability by the factor exp(delta + |score - top| units + 1 ulp of exp); the normalized one
// by that and its mean. The product with v is a sum of `keys` FP32 terms; BF16 rounds each probability once
// more. exp's smallest results and BF16's flushed subnormals count absolutely.
// `extra`: relative, of each weight (tiles of keys one after another rescale what came before).
inline std::vector<double> bounds(const Problem& p, double extra = 0) {
  const Case& c = p.c;
  const bool bf16 = c.type == OperandType::bf16;
  const double flush = bf16 ? kSmallestNormal : kSubnormal;
  const double scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  std::vector<double> result(static_cast<std::size_t>(c.tokens * p.out_stride), 0);
  std::vector<double> score(static_cast<std::size_t>(c.tokens)), delta(score), weight(score);
  for (std::int64_t t = 0; t < c.tokens; ++t)
    for (std::int64_t h = 0; h < c.group; ++h) {
      const std::int64_t first = c.window > 0 ? std::max<std::int64_t>(0, t - c.window + 1) : 0;
      double top = -INFINITY, sum = 0, mean = 0;
      for (std::int64_t u = first; u <= t; ++u) {
        double dot = 0, sizes = 0, lost = 0;
        for (std::int64_t i = 0; i < c.head_dim; ++i) {
          const float raw = p.q[static_cast<std::size_t>(t * p.q_stride + h * c.head_dim + i)];
          const double a = bf16 ? round_to_bf16(raw) : raw;
          const double b = p.k[static_cast<std::size_t>(u * c.head_dim + i)];
          dot += a * b;
          sizes += std::abs(a * b);
          lost += flush * (2 + std::abs(a) + std::abs(b));
        }
        const double key =
            p.k_scale.empty() ? 1 : p.k_scale[p.k_scale.size() == 1 ? 0 : static_cast<std::size_t>(u)];
        const auto at = static_cast<std::size_t>(u);
        score[at] = dot * scale * key;
        delta[at] = (static_cast<double>(c.head_dim + 4) * kUnit * sizes + lost) * scale * std::abs(key);
        top = std::max(top, score[at]);
      }
      for (std::int64_t u = first; u <= t; ++u) {
        const auto at = static_cast<std::size_t>(u);
        weight[at] = std::exp(score[at] - top);
        delta[at] = std::expm1(delta[at] + std::abs(score[at] - top) * kUnit + 2 * kUnit + extra);
        sum += weight[at];
      }
      for (std::int64_t u = first; u <= t; ++u)
        mean += weight[static_cast<std::size_t>(u)] / sum * delta[static_cast<std::size_t>(u)];
      const auto keys = static_cast<double>(t - first + 1);
      const double product = (keys + 8) * kUnit + (bf16 ? kUnitBf16 : 0);
      for (std::int64_t i = 0; i < c.head_dim; ++i) {
        double bound = 0;
        for (std::int64_t u = first; u <= t; ++u) {
          const auto at = static_cast<std::size_t>(u);
          const double value = std::abs(double{p.v[static_cast<std::size_t>(u * c.head_dim + i)]});
          bound += weight[at] / sum * value * 1.01 * (delta[at] + mean + product) + flush * (2 + value);
        }
        result[static_cast<std::size_t>(t * p.out_stride + h * c.head_dim + i)] =
            bound * std::abs(double{c.v_scale}) + kSubnormal;
      }
    }
  return result;  // 0 in the gaps between rows: nothing is written there
}

}  // namespace quantmap::testing
