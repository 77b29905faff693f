#include "kernels/attention/attention.hpp"

#include "emulated/device.hpp"
#include "kernels/attention_problem.hpp"

namespace quantmap {
namespace {

using namespace testing;

// All of a problem in device memory.
struct OnDevice {
  Device<float> q, k, v, k_scale;
  Device<std::uint16_t> k_bits, v_bits;
  explicit OnDevice(const Problem& p)
      : q(p.q), k(p.k), v(p.v), k_scale(p.k_scale), k_bits(p.k_bits), v_bits(p.v_bits) {}
  AttentionInput input(const Problem& p, float* out) const {
    AttentionInput in = p.input(q.data(), p.q_stride, out, p.out_stride);
    const bool f32 = in.type == OperandType::f32;
    in.k = f32 ? static_cast<const void*>(k.data()) : k_bits.data();
    in.v = f32 ? static_cast<const void*>(v.data()) : v_bits.data();
    if (in.k_scale) in.k_scale = k_scale.data();
    return in;
  }
};

std::vector<float> on_device(const Problem& p, std::int64_t first_query = 0) {
  const OnDevice device(p);
  const Device<float> out(std::vector<float>(static_cast<std::size_t>(p.c.tokens * p.out_stride), 7.5F));
  AttentionInput in = device.input(p, out.data());
  in.first_query = first_query;
  emulated::kernels().attention(in, {});
  return out.host();
}

// Bounds as on the CPU; beside them each tile of 16 keys may rescale what came before: 2 units of exp, 1 of
// the product.
void expect_reference(const Problem& p, const std::string& what) {
  std::vector<float> want(static_cast<std::size_t>(p.c.tokens * p.out_stride), 7.5F);
  attention_ref(p.input(p.q.data(), p.q_stride, want.data(), p.out_stride));
  const auto tiles = static_cast<double>(p.c.tokens / 16 + 1);
  const std::vector<double> bound = bounds(p, 3 * tiles * kUnit);
  expect_like(on_device(p), want, what, [&](std::size_t i) { return bound[i]; });
}

class AttentionOn : public ::testing::TestWithParam<std::tuple<OperandType, InputClass>> {};

// Tokens around a tile, windows shorter and longer than it, heads that are no multiple of it.
TEST_P(AttentionOn, EqualsItsReferenceWithinRounding) {
  const auto [type, kind] = GetParam();
  const Case cases[] = {
      {type, 1, 0, 1, 20, KeyScales::none, 1},        {type, 17, 0, 3, 64, KeyScales::one, 0.25F},
      {type, 40, 16, 3, 32, KeyScales::per_token, 3}, {type, 33, 1, 4, 20, KeyScales::none, 1},
      {type, 50, 21, 1, 128, KeyScales::none, 1},
  };
  for (const Case& c : cases) {
    expect_reference(Problem(c, kind, kNormal, kNormal), c.name() + ", q");
    expect_reference(Problem(c, kNormal, kind, kNormal), c.name() + ", k");
    expect_reference(Problem(c, kNormal, kNormal, kind), c.name() + ", v");
  }
}

INSTANTIATE_TEST_SUITE_P(Emulated, AttentionOn,
                         ::testing::Combine(::testing::Values(OperandType::f32, OperandType::bf16),
                                            ::testing::ValuesIn(kInputClasses)),
                         [](const auto& row) {
                           return std::string(std::get<0>(row.param) == OperandType::f32 ? "f32_" : "bf16_") +
                                  as_name(std::get<1>(row.param).name);
                         });

class AttentionLawsOn : public ::testing::TestWithParam<std::tuple<OperandType, std::int64_t>> {
 protected:
  Problem problem(std::int64_t head_dim = 20) const {
    return Problem(
        {std::get<0>(GetParam()), 50, std::get<1>(GetParam()), 3, head_dim, KeyScales::per_token, 0.5F},
        kNormal, kNormal, kNormal);
  }
};

// A NaN or Inf reaches the tokens that see it, and no other.
TEST_P(AttentionLawsOn, NonfiniteValuesReachThoseThatSeeThem) {
  constexpr std::int64_t kAt = 20;
  for (const float fault : {std::nanf(""), std::numeric_limits<float>::infinity()})
    for (const bool in_key : {true, false}) {
      Problem p = problem();
      const std::vector<float> sound = on_device(p);
      (in_key ? p.k : p.v)[static_cast<std::size_t>(kAt * p.c.head_dim + 3)] = fault;
      p.round_operands();
      const std::vector<float> got = on_device(p);
      for (std::int64_t t = 0; t < p.c.tokens; ++t) {
        const bool sees = t >= kAt && (p.c.window == 0 || t - kAt < p.c.window);
        const auto at = static_cast<std::size_t>(t * p.out_stride);
        // A key that is +Inf gives scores of either sign: one of -Inf weighs nothing, one of +Inf is NaN.
        const bool faulty = !std::isfinite(got[at + 3]);
        EXPECT_TRUE(sees ? faulty || (in_key && std::isinf(fault))
                         : same_bits({&got[at], 20}, {&sound[at], 20}))
            << "token " << t << ", " << fault << ", key " << in_key << ": " << got[at + 3];
      }
    }
}

TEST_P(AttentionLawsOn, OutputMayReplaceTheQueries) {
  const Problem p = problem();
  const std::vector<float> apart = on_device(p);
  const OnDevice device(p);
  AttentionInput in = device.input(p, device.q.data());
  in.out_stride = p.q_stride;
  emulated::kernels().attention(in, {});
  const std::vector<float> together = device.q.host();
  for (std::int64_t t = 0; t < p.c.tokens; ++t)
    ASSERT_TRUE(same_bits({&together[static_cast<std::size_t>(t * p.q_stride)], 60},
                          {&apart[static_cast<std::size_t>(t * p.out_stride)], 60}))
        << t;
}

// The rows from first_query on have the same bits, and no other row is touched.
TEST_P(AttentionLawsOn, FirstQueryChangesNoBitOfTheRowsItKeeps) {
  const Problem p = problem(64);
  const std::vector<float> all = on_device(p);
  for (const std::int64_t first : {1, 16, 37, 49}) {
    const std::vector<float> some = on_device(p, first);
    const auto from = static_cast<std::size_t>(first * p.out_stride);
    EXPECT_TRUE(same_bits({some.data() + from, some.size() - from}, {all.data() + from, all.size() - from}))
        << first;
    for (std::size_t i = 0; i < from; ++i) ASSERT_EQ(some[i], 7.5F);
  }
}

TEST_P(AttentionLawsOn, LaterTokensChangeNoEarlierOutput) {
  const Problem p = problem();
  const std::vector<float> before = on_device(p);
  for (const std::int64_t from : {1, 16, 33, 49}) {
    Problem changed = p;
    for (std::size_t i = static_cast<std::size_t>(from * p.c.head_dim); i < p.k.size(); ++i)
      changed.k[i] = -3 * p.k[i] + 1, changed.v[i] = 100 - p.v[i];
    changed.round_operands();
    const std::vector<float> after = on_device(changed);
    const auto count = static_cast<std::size_t>(from * p.out_stride);
    EXPECT_TRUE(same_bits({before.data(), count}, {after.data(), count})) << "from token " << from;
    EXPECT_FALSE(same_bits(before, after)) << "from token " << from;
  }
}

INSTANTIATE_TEST_SUITE_P(Emulated, AttentionLawsOn,
                         ::testing::Combine(::testing::Values(OperandType::f32, OperandType::bf16),
                                            ::testing::Values(0, 1, 16, 21)),
                         [](const auto& row) {
                           return std::string(std::get<0>(row.param) == OperandType::f32 ? "f32" : "bf16") +
                                  "_window_" + std::to_string(std::get<1>(row.param));
                         });

TEST(EmulatedAttention, RefusesHeadsThatDoNotFit) {
  const Problem p({OperandType::f32, 1, 0, 1, 257, KeyScales::none, 1}, kNormal, kNormal, kNormal);
  EXPECT_THROW(on_device(p), Error);
}

}  // namespace
}  // namespace quantmap
