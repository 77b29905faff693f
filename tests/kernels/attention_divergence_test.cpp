#include "kernels/attention_divergence/attention_divergence.hpp"

#include <cstdlib>
#include <memory>

#include "inputs.hpp"

namespace quantmap {
namespace {

using namespace testing;

struct Side {
  OperandType type;
  std::vector<float> q, k, k_scale;
  std::vector<std::uint16_t> bits;
  Side(OperandType given, std::int64_t tokens, std::int64_t group, std::int64_t dim, std::uint64_t seed)
      : type(given),
        q(make_input(kNormal, tokens * group * dim, seed)),
        k(make_input(kNormal, tokens * dim, seed + 1)) {
    bits = as_bf16(k);
  }
  AttentionInput input(std::int64_t tokens, std::int64_t group, std::int64_t dim, std::int64_t window) const {
    AttentionInput in;
    in.type = type;
    in.tokens = tokens;
    in.group = group;
    in.head_dim = dim;
    in.window = window;
    in.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
    in.q = q.data();
    in.q_stride = group * dim;
    in.k = type == OperandType::f32 ? static_cast<const void*>(k.data()) : bits.data();
    in.k_scale = k_scale.empty() ? nullptr : k_scale.data();
    in.k_scale_count = static_cast<std::int64_t>(k_scale.size());
    return in;
  }
};

std::vector<double> divergence(const AttentionInput& a, const AttentionInput& b) {
  std::vector<double> kl(static_cast<std::size_t>(a.tokens * a.group), -1);
  std::byte* scratch = static_cast<std::byte*>(
      std::aligned_alloc(64, static_cast<std::size_t>(attention_divergence_scratch_bytes(a, b))));
  attention_divergence(a, b, scratch, kl.data());
  std::free(scratch);
  return kl;
}

struct Case {
  std::int64_t tokens, group, dim, window;
};
constexpr Case kCases[] = {{1, 1, 8, 0},     {2, 3, 16, 0},    {63, 2, 64, 0},   {64, 1, 64, 0},
                           {65, 3, 64, 0},   {150, 2, 32, 0},  {150, 2, 32, 40}, {200, 1, 16, 1},
                           {130, 2, 16, 64}, {129, 1, 16, 500}};

TEST(AttentionDivergence, EqualsTheNaiveOne) {
  for (const Case& c : kCases)
    for (const OperandType type : {OperandType::f32, OperandType::bf16}) {
      const Side a(type, c.tokens, c.group, c.dim, 10);
      Side b(OperandType::f32, c.tokens, c.group, c.dim, 20);
      for (std::size_t i = 0; i < b.q.size(); ++i) b.q[i] = a.q[i] + 0.2F * b.q[i];
      b.k_scale.assign(static_cast<std::size_t>(c.tokens), 0.5F);
      const AttentionInput x = a.input(c.tokens, c.group, c.dim, c.window);
      const AttentionInput y = b.input(c.tokens, c.group, c.dim, c.window);
      const std::vector<double> kl = divergence(x, y);
      std::vector<double> want(kl.size());
      attention_divergence_ref(x, y, want.data());
      for (std::size_t i = 0; i < kl.size(); ++i)
        ASSERT_TRUE(std::abs(kl[i] - want[i]) <= 2e-5 * (1 + want[i]))
            << c.tokens << " tokens, window " << c.window << ", query " << i << ": " << kl[i] << " for "
            << want[i];
      EXPECT_EQ(kl[0], 0.0) << "the first token has one weight, 1";
    }
}

TEST(AttentionDivergence, OfEqualScoresIsExactlyZero) {
  const Side a(OperandType::bf16, 150, 3, 32, 30);
  const AttentionInput x = a.input(150, 3, 32, 0);
  for (const double kl : divergence(x, x)) EXPECT_EQ(kl, 0.0);
}

// One query and two keys by hand: p = (1/2, 1/2) against q = (1/4, 3/4).
TEST(AttentionDivergence, TwoKeysByHand) {
  Side a(OperandType::f32, 2, 1, 1, 1), b = a;
  a.q = b.q = {1, 1};
  a.k = {0, 0};
  b.k = {0, std::log(3.0F)};
  const std::vector<double> kl = divergence(a.input(2, 1, 1, 0), b.input(2, 1, 1, 0));
  EXPECT_NEAR(kl[1], 0.5 * std::log(0.5 / 0.25) + 0.5 * std::log(0.5 / 0.75), 1e-6);
}

// A weight that underflows to 0 on one side is a large divergence, not an infinite one.
TEST(AttentionDivergence, IsFiniteWhereAWeightVanishesAndNanWhereAScoreIs) {
  Side a(OperandType::f32, 2, 1, 1, 1), b = a;
  a.q = b.q = {1, 1};
  a.k = {0, 0};
  b.k = {0, 1000};
  EXPECT_NEAR(divergence(a.input(2, 1, 1, 0), b.input(2, 1, 1, 0))[1], 500 - std::log(2.0), 1e-3);
  b.k = {0, NAN};
  EXPECT_TRUE(std::isnan(divergence(a.input(2, 1, 1, 0), b.input(2, 1, 1, 0))[1]));
}

}  // namespace
}  // namespace quantmap
