#include "kernels/attention/attention.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "kernels/attention_problem.hpp"

namespace quantmap {
namespace {

using namespace testing;

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
