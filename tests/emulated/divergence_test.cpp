#include "kernels/divergence/divergence.hpp"

#include "emulated/device.hpp"
#include "kernels/divergence_bounds.hpp"

namespace quantmap {
namespace {

using namespace testing;

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Scored {
  std::vector<ReferenceRow> references;
  std::vector<TokenScore> tokens;
};
// Rows of logits with a gap after each.
Scored score(const std::vector<float>& p, const std::vector<float>& q,
             const std::vector<std::int32_t>& targets) {
  const auto tokens = static_cast<std::int64_t>(targets.size());
  const std::int64_t stride = static_cast<std::int64_t>(p.size()) / tokens;
  const Device<float> p_logits(p), q_logits(q);
  const Device<std::int32_t> at(targets);
  const Device<ReferenceRow> references(tokens);
  const Device<TokenScore> out(tokens);
  emulated::kernels().reference_rows(p_logits.data(), stride, at.data(), tokens, stride - 1,
                                     references.data(), {});
  emulated::kernels().compare(q_logits.data(), stride, p_logits.data(), stride, at.data(), tokens, stride - 1,
                              references.data(), out.data(), {});
  return {references.host(), out.host()};
}

void near(const char* name, double got, double want, double bound, const std::string& what) {
  EXPECT_TRUE(std::isnan(want)   ? std::isnan(got)
              : std::isinf(want) ? got == want
                                 : std::abs(got - want) <= bound)
      << what << ", " << name << ": " << got << " instead of " << want << ", " << bound << " allowed";
}

void expect_reference(const std::vector<float>& p, const std::vector<float>& q, std::int64_t count,
                      const std::string& what) {
  const auto last = static_cast<std::int32_t>(count - 1);
  const std::vector<std::int32_t> targets = {0, last / 2, last};
  const Scored scored = score(p, q, targets);
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const auto begin = static_cast<std::int64_t>(t) * (count + 1);
    const std::vector<float> p_row(p.begin() + begin, p.begin() + begin + count);
    const std::vector<float> q_row(q.begin() + begin, q.begin() + begin + count);
    const TokenScore got = scored.tokens[t],
                     want = compare_ref(q_row.data(), count, targets[t], p_row.data());
    const Bounds b = bounds(p_row, q_row, targets[t]);
    near("nll", got.nll, want.nll, b.nll, what);
    near("kl", got.kl, want.kl, b.kl, what);
    near("tv", got.tv, want.tv, b.tv, what);
    near("delta_p", got.delta_p, want.delta_p, b.delta_p, what);
    EXPECT_EQ(got.top1, want.top1) << what;
    EXPECT_EQ(got.margin_flip, want.margin_flip) << what;
    EXPECT_EQ(got.greedy, want.greedy) << what;
    // The reference's own side against the CPU's.
    std::vector<float> weights(p_row.size());
    const ReferenceRow row = scored.references[t],
                       cpu = reference_row(p_row.data(), count, targets[t], weights.data());
    EXPECT_EQ(row.top, cpu.top) << what;
    near("largest", row.largest, cpu.largest, 0, what);
    near("reference nll", row.nll, cpu.nll, b.reference_nll, what);
    near("p_target", row.p_target, cpu.p_target, b.p_target, what);
    near("lead", row.lead, cpu.lead, b.lead, what);
  }
}

struct Row {
  const char* name;
  InputClass p, noise;  // q = p * keep + noise * size
  float p_size, keep, noise_size;
};
constexpr Row kRows[] = {
    {"zeros", kZeros, kZeros, 1, 1, 1},
    {"normal", kNormal, kNormal, 3, 1, 0.05F},
    {"a scheme that breaks the model", kNormal, kNormal, 3, 0, 3},
    {"heavy tails", kHeavyTailed, kHeavyTailed, 2, 1, 0.3F},
    {"flat against peaked", kZeros, kNormal, 1, 1, 10},
    {"one logit far above", kOutlier, kNormal, 1, 1, 0.1F},
    {"denormal", kDenormal, kDenormal, 1, 1, 1},
    {"huge logits", kNormal, kNormal, 1e4F, 1, 1e2F},
};

class DivergenceOn : public ::testing::TestWithParam<Row> {};

TEST_P(DivergenceOn, EqualsItsReferenceWithinRounding) {
  const Row& row = GetParam();
  for (const std::int64_t count : {1, 3, 31, 257, 1000, 5003}) {
    std::vector<float> p = make_input(row.p, 3 * (count + 1), 1),
                       q = make_input(row.noise, 3 * (count + 1), 2);
    for (std::size_t i = 0; i < p.size(); ++i) {
      p[i] *= row.p_size;
      q[i] = p[i] * row.keep + q[i] * row.noise_size;
    }
    expect_reference(p, q, count, std::to_string(count) + " tokens");
  }
}

TEST_P(DivergenceOn, OfEqualRowsIsExactlyZero) {
  const Row& row = GetParam();
  std::vector<float> p = make_input(row.p, 301, 3);
  for (float& x : p) x *= row.p_size;
  p[7] = -kInf;  // a masked token: -inf minus -inf must not appear
  const Scored s = score(p, p, {0});
  EXPECT_EQ(s.tokens[0].kl, 0.0);
  EXPECT_EQ(s.tokens[0].tv, 0.0);
  EXPECT_EQ(s.tokens[0].delta_p, 0.0);
  EXPECT_EQ(s.tokens[0].nll, s.references[0].nll);
  EXPECT_TRUE(s.tokens[0].top1);
}

INSTANTIATE_TEST_SUITE_P(Emulated, DivergenceOn, ::testing::ValuesIn(kRows),
                         [](const auto& row) { return as_name(row.param.name); });

class DivergenceOfNonfinite : public ::testing::TestWithParam<float> {};

// A token that the reference rules out, or the scheme, or both; NaN and +Inf turn every score into NaN.
TEST_P(DivergenceOfNonfinite, EqualsItsReference) {
  for (const std::int64_t count : {3, 33, 1000})
    for (const std::int64_t at : {std::int64_t{1}, count - 1})
      for (const int side : {0, 1, 2}) {
        std::vector<float> p = make_input(kNormal, 3 * (count + 1), 4),
                           q = make_input(kNormal, 3 * (count + 1), 5);
        for (std::int64_t t = 0; t < 3; ++t) {
          const auto i = static_cast<std::size_t>(t * (count + 1) + at);
          if (side != 1) p[i] = GetParam();
          if (side != 0) q[i] = GetParam();
        }
        const bool masked = GetParam() == -kInf;
        if (masked) {
          expect_reference(p, q, count, "side " + std::to_string(side));
          continue;
        }
        for (const TokenScore& s : score(p, q, {0, 0, 0}).tokens) {
          EXPECT_TRUE(std::isnan(s.kl) && std::isnan(s.tv) && std::isnan(s.delta_p)) << side << ", " << count;
          EXPECT_EQ(std::isnan(s.nll), side != 0) << "the scheme's own NLL";
          EXPECT_FALSE(side != 0 && s.greedy);
        }
      }
}

INSTANTIATE_TEST_SUITE_P(
    Emulated, DivergenceOfNonfinite, ::testing::Values(std::numeric_limits<float>::quiet_NaN(), kInf, -kInf),
    [](const auto& row) {
      return std::string(std::isnan(row.param) ? "nan" : row.param > 0 ? "inf" : "minus_inf");
    });

// The first of equal logits, wherever the two lie among threads, warps and strides.
TEST(EmulatedDivergence, TiesPickTheFirst) {
  for (const auto& [first, second] : {std::pair{0, 1}, {31, 32}, {255, 256}, {5, 999}, {300, 301}}) {
    std::vector<float> p = make_input(kNormal, 1001, 7);
    p[static_cast<std::size_t>(first)] = p[static_cast<std::size_t>(second)] = 10;
    std::vector<float> q = p;
    q[static_cast<std::size_t>(first)] = 9;
    EXPECT_EQ(score(p, p, {0}).references[0].top, first);
    EXPECT_EQ(score(p, p, {0}).references[0].lead, 0.0);
    EXPECT_FALSE(score(p, q, {0}).tokens[0].top1);
  }
}

}  // namespace
}  // namespace quantmap
