#include "kernels/attention/attention.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "inputs.hpp"

namespace quantmap {
namespace {

using namespace testing;

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

// Scratch of exactly the promised size, from the heap, so that a sanitizer sees any overrun.
void run(const AttentionInput& input) {
  const auto bytes = static_cast<std::size_t>(attention_scratch_bytes(input));
  ASSERT_EQ(bytes % 64, 0U);
  const std::unique_ptr<std::byte, void (*)(void*)> scratch(
      static_cast<std::byte*>(std::aligned_alloc(64, std::max<std::size_t>(bytes, 64))), std::free);
  std::fill_n(scratch.get(), bytes, std::byte{0xFF});  // NaN: nothing may be read before it is written
  attention(input, scratch.get());
}
std::vector<float> fast(const Problem& p) {
  std::vector<float> out(static_cast<std::size_t>(p.c.tokens * p.out_stride), 7.5F);
  run(p.input(p.q.data(), p.q_stride, out.data(), p.out_stride));
  return out;
}
std::vector<float> reference(const Problem& p) {
  std::vector<float> out(static_cast<std::size_t>(p.c.tokens * p.out_stride), 7.5F);
  attention_ref(p.input(p.q.data(), p.q_stride, out.data(), p.out_stride));
  return out;
}

// What rounding may do to each output. A score is wrong by delta = (head_dim + 4) units of scale * sum
// |q||k|, so a probability by the factor exp(delta + |score - top| units + 1 ulp of exp); the normalized one
// by that and its mean. The product with v is a sum of `keys` FP32 terms; BF16 rounds each probability once
// more. exp's smallest results and BF16's flushed subnormals count absolutely.
std::vector<double> bounds(const Problem& p) {
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
        delta[at] = std::expm1(delta[at] + std::abs(score[at] - top) * kUnit + 2 * kUnit);
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

void expect_reference(const Problem& p, const std::string& what) {
  const std::vector<double> bound = bounds(p);
  expect_within(fast(p), reference(p), what, [&](std::size_t i) { return bound[i]; });
}

// Tokens around a tile of 64 queries, windows shorter and longer than it; every type, window and length with
// three pairs of group and head size, which take turns with the ways of scaling keys.
TEST(Attention, EqualsItsReferenceWithinRounding) {
  struct Heads {
    std::int64_t group, head_dim;
  };
  constexpr Heads kHeads[] = {{1, 20},  {3, 64}, {4, 128}, {1, 32}, {3, 20},  {4, 64},
                              {1, 128}, {3, 32}, {4, 20},  {1, 64}, {3, 128}, {4, 32}};
  constexpr std::size_t kPairs = std::size(kHeads);
  std::size_t next = 0;
  for (const OperandType type : {OperandType::f32, OperandType::bf16})
    for (const std::int64_t window : {0, 1, 16, 100})
      for (const std::int64_t tokens : {1, 63, 64, 65, 300})
        for (int turn = 0; turn < 3; ++turn, ++next) {
          const Heads& heads = kHeads[next * 5 % kPairs];  // 5 and 12 share no factor: all pairs take part
          const Case c{type,
                       tokens,
                       window,
                       heads.group,
                       heads.head_dim,
                       static_cast<KeyScales>(turn),
                       turn == 1 ? 0.25F : 1.0F};
          expect_reference(Problem(c, kNormal, kNormal, kNormal), c.name());
        }
}

TEST(Attention, HoldsOnEveryKindOfInput) {
  for (const OperandType type : {OperandType::f32, OperandType::bf16})
    for (const std::int64_t window : {0, 16})
      for (const InputClass& kind : kInputClasses) {
        const Case c{type, 65, window, 3, 32, KeyScales::per_token, 3.0F};
        expect_reference(Problem(c, kind, kNormal, kNormal), c.name() + ", q " + kind.name);
        expect_reference(Problem(c, kNormal, kind, kNormal), c.name() + ", k " + kind.name);
        expect_reference(Problem(c, kNormal, kNormal, kind), c.name() + ", v " + kind.name);
      }
}

// Laws that hold to the bit, for both types and for windows of both kinds.
class AttentionLaw : public ::testing::TestWithParam<std::tuple<OperandType, std::int64_t>> {
 protected:
  Case c() const {
    return {std::get<0>(GetParam()), 150, std::get<1>(GetParam()), 3, 20, KeyScales::per_token, 0.5F};
  }
};

TEST_P(AttentionLaw, OutputMayReplaceTheQueries) {
  const Problem p(c(), kNormal, kNormal, kNormal);
  const std::vector<float> apart = fast(p);
  std::vector<float> together = p.q, together_ref = p.q;
  run(p.input(together.data(), p.q_stride, together.data(), p.q_stride));
  attention_ref(p.input(together_ref.data(), p.q_stride, together_ref.data(), p.q_stride));
  const std::vector<float> want_ref = reference(p);
  const auto width = static_cast<std::size_t>(p.c.group * p.c.head_dim);
  for (std::int64_t t = 0; t < p.c.tokens; ++t) {
    const std::size_t at = static_cast<std::size_t>(t * p.out_stride),
                      to = static_cast<std::size_t>(t * p.q_stride);
    ASSERT_TRUE(same_bits({together.data() + to, width}, {apart.data() + at, width})) << t;
    ASSERT_TRUE(same_bits({together_ref.data() + to, width}, {want_ref.data() + at, width})) << t;
  }
}

// Causal: what comes later changes nothing, whichever tile it lies in.
TEST_P(AttentionLaw, LaterTokensChangeNoEarlierOutput) {
  const Problem p(c(), kNormal, kNormal, kNormal);
  const std::vector<float> before = fast(p);
  for (const std::int64_t from : {1, 40, 64, 100, 149}) {
    Problem changed = p;
    for (std::size_t i = static_cast<std::size_t>(from * p.c.head_dim); i < p.k.size(); ++i)
      changed.k[i] = -3 * p.k[i] + 1, changed.v[i] = 100 - p.v[i];
    for (std::size_t i = static_cast<std::size_t>(from * p.q_stride); i < p.q.size(); ++i)
      changed.q[i] = -p.q[i];
    for (std::size_t i = static_cast<std::size_t>(from); i < p.k_scale.size(); ++i) changed.k_scale[i] = 9;
    changed.round_operands();
    const std::vector<float> after = fast(changed);
    const auto count = static_cast<std::size_t>(from * p.out_stride);
    EXPECT_TRUE(same_bits({before.data(), count}, {after.data(), count})) << "from token " << from;
    EXPECT_FALSE(same_bits(before, after)) << "from token " << from;
  }
}

INSTANTIATE_TEST_SUITE_P(, AttentionLaw,
                         ::testing::Combine(::testing::Values(OperandType::f32, OperandType::bf16),
                                            ::testing::Values(0, 1, 16, 100)),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param) == OperandType::f32 ? "f32" : "bf16") +
                                  "_window_" + std::to_string(std::get<1>(param.param));
                         });

// A window of n sees n tokens, itself included: the one before that changes nothing, the last one seen does.
// At a tile's first query (64, 128) the window reaches furthest back; windows of 2, 18 and 50 then begin just
// before the keys that a tile takes along, which come in sixteens.
TEST(Attention, AWindowEndsWhereItSays) {
  for (const OperandType type : {OperandType::f32, OperandType::bf16})
    for (const std::int64_t window : {1, 2, 16, 17, 18, 50, 63, 64, 65, 100}) {
      const Case c{type, 150, window, 3, 20, KeyScales::none, 1};
      const Problem p(c, kNormal, kNormal, kNormal);
      const std::vector<float> before = fast(p);
      for (const std::int64_t token : {63, 64, 128, 140}) {
        const std::int64_t last_seen = token - window + 1;
        const auto row = static_cast<std::size_t>(token * p.out_stride);
        const auto width = static_cast<std::size_t>(c.group * c.head_dim);
        for (const std::int64_t changed_token : {last_seen - 1, last_seen}) {
          if (changed_token < 0) continue;
          Problem changed = p;
          for (std::int64_t i = 0; i < c.head_dim; ++i)
            changed.v[static_cast<std::size_t>(changed_token * c.head_dim + i)] += 50;
          changed.round_operands();
          const std::vector<float> after = fast(changed);
          EXPECT_EQ(same_bits({before.data() + row, width}, {after.data() + row, width}),
                    changed_token < last_seen)
              << c.name() << ": token " << token;
        }
      }
    }
}

TEST(Attention, AWindowAsLongAsTheTextIsNoWindow) {
  for (const OperandType type : {OperandType::f32, OperandType::bf16})
    for (const std::int64_t window : {150, 151, 4096}) {
      const Case all{type, 150, 0, 2, 32, KeyScales::none, 1},
          wide{type, 150, window, 2, 32, KeyScales::none, 1};
      EXPECT_TRUE(same_bits(fast(Problem(all, kNormal, kNormal, kNormal)),
                            fast(Problem(wide, kNormal, kNormal, kNormal))))
          << wide.name();
    }
}

// Seeing itself only, a token returns its own value exactly, times the value scale.
TEST(Attention, AWindowOfOneReturnsTheValues) {
  for (const OperandType type : {OperandType::f32, OperandType::bf16}) {
    const Case c{type, 70, 1, 2, 20, KeyScales::per_token, 0.75F};
    const Problem p(c, kOutlier, kHeavyTailed, kNormal);
    const std::vector<float> out = fast(p);
    for (std::int64_t t = 0; t < c.tokens; ++t)
      for (std::int64_t i = 0; i < c.group * c.head_dim; ++i)
        ASSERT_EQ(out[static_cast<std::size_t>(t * p.out_stride + i)],
                  p.v[static_cast<std::size_t>(t * c.head_dim + i % c.head_dim)] * 0.75F)
            << c.name() << ", token " << t;
  }
}

}  // namespace
}  // namespace quantmap
