#include "kernels/divergence/divergence.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "kernels/divergence_bounds.hpp"

namespace quantmap {
namespace {

using namespace testing;

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Scored {
  ReferenceRow reference;
  TokenScore token;
};
Scored score(const std::vector<float>& p, const std::vector<float>& q, std::int64_t target) {
  const auto count = static_cast<std::int64_t>(p.size());
  std::vector<float> weights(p.size(), NAN), scratch = q;
  Scored scored;
  scored.reference = reference_row(p.data(), count, target, weights.data());
  scored.token = compare(scratch.data(), count, target, scored.reference, p.data(), weights.data());
  return scored;
}
TokenScore score_ref(const std::vector<float>& p, const std::vector<float>& q, std::int64_t target) {
  return compare_ref(q.data(), static_cast<std::int64_t>(q.size()), target, p.data());
}

void expect_reference(const std::vector<float>& p, const std::vector<float>& q, std::int64_t target,
                      const std::string& what) {
  const Scored scored = score(p, q, target);
  const TokenScore got = scored.token, want = score_ref(p, q, target);
  const Bounds b = bounds(p, q, target);
  const auto near = [&](const char* name, double a, double w, double bound) {
    EXPECT_TRUE(std::abs(a - w) <= bound)
        << what << ", " << name << ": " << a << " instead of " << w << ", " << bound << " allowed";
  };
  near("nll", got.nll, want.nll, b.nll);
  near("kl", got.kl, want.kl, b.kl);
  near("tv", got.tv, want.tv, b.tv);
  near("delta_p", got.delta_p, want.delta_p, b.delta_p);
  EXPECT_EQ(got.top1, want.top1) << what;
  // The reference's own side, from its softmax in double.
  const Softmax softmax(p);
  std::vector<double> sorted = softmax.p;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const double second = sorted.size() > 1 ? sorted[1] : 0;
  near("p_target", scored.reference.p_target, softmax.p[static_cast<std::size_t>(target)], b.p_target);
  near("lead", scored.reference.lead, sorted[0] - second, b.lead);
  near("reference nll", scored.reference.nll, score_ref(p, p, target).nll, b.reference_nll);
}

constexpr std::int64_t kVocabularies[] = {1,  3,    17,
                                          24, 1000, 49152};  // 24: the golden vectors'; 49152: SmolLM2's

struct Pair {
  const char* name;
  InputClass p, noise;  // q = p * keep + noise * size
  float p_size, keep, noise_size;
};
constexpr Pair kPairs[] = {
    {"a good scheme", kNormal, kNormal, 3, 1, 0.05F},
    {"a scheme that breaks the model", kNormal, kNormal, 3, 0, 3},
    {"heavy tails", kHeavyTailed, kHeavyTailed, 2, 1, 0.3F},
    {"flat against peaked", kZeros, kNormal, 1, 1, 10},
    {"peaked against flat", kNormal, kZeros, 10, 0, 1},
    {"one logit far above", kOutlier, kNormal, 1, 1, 0.1F},
    {"subnormal logits", kDenormal, kDenormal, 1, 1, 1},
    {"huge logits", kNormal, kNormal, 1e4F, 1, 1e2F},
};

TEST(Divergence, EqualsItsReferenceWithinRounding) {
  for (const Pair& pair : kPairs)
    for (const std::int64_t count : kVocabularies) {
      std::vector<float> p = make_input(pair.p, count, 1), q = make_input(pair.noise, count, 2);
      for (std::size_t i = 0; i < p.size(); ++i) {
        p[i] *= pair.p_size;
        q[i] = p[i] * pair.keep + q[i] * pair.noise_size;
      }
      for (const std::int64_t target : {std::int64_t{0}, count / 2, count - 1})
        expect_reference(p, q, target, std::string(pair.name) + ", " + std::to_string(count) + " tokens");
    }
}

TEST(Divergence, OfEqualRowsIsExactlyZero) {
  for (const InputClass& kind : kInputClasses)
    for (const std::int64_t count : kVocabularies) {
      std::vector<float> p = make_input(kind, count, 3);
      if (count > 20) p[7] = -kInf;  // a masked token: -inf minus -inf must not appear
      for (const std::vector<float>& row : {p, [&] {
                                              std::vector<float> huge = p;
                                              for (float& x : huge) x *= 1e4F;
                                              return huge;
                                            }()}) {
        const Scored s = score(row, row, 0);
        const std::string what = std::string(kind.name) + ", " + std::to_string(count);
        EXPECT_EQ(s.token.kl, 0.0) << what;
        EXPECT_EQ(s.token.tv, 0.0) << what;
        EXPECT_EQ(s.token.delta_p, 0.0) << what;
        EXPECT_EQ(s.token.nll, s.reference.nll) << what;
        EXPECT_TRUE(s.token.top1) << what;
        EXPECT_FALSE(s.token.margin_flip) << what;
      }
    }
}

TEST(Divergence, HandValues) {
  // p = (1/2, 1/4, 1/4), q = (1/4, 1/4, 1/2), target 2.
  const float ln2 = std::log(2.0F);
  const std::vector<float> p = {5 + ln2, 5, 5}, q = {-3, -3, ln2 - 3};
  const Scored s = score(p, q, 2);
  constexpr double kFp32 = 1e-6;  // ln 2 as a float beside 5
  EXPECT_NEAR(s.reference.nll, std::log(4.0), kFp32);
  EXPECT_NEAR(s.reference.p_target, 0.25, kFp32);
  EXPECT_NEAR(s.reference.lead, 0.25, kFp32);
  EXPECT_EQ(s.reference.top, 0);
  EXPECT_NEAR(s.token.nll, std::log(2.0), kFp32);
  EXPECT_NEAR(s.token.kl, 0.5 * std::log(2.0) - 0.25 * std::log(2.0), kFp32);
  EXPECT_NEAR(s.token.tv, 0.25, kFp32);
  EXPECT_NEAR(s.token.delta_p, 0.25, kFp32);
  EXPECT_FALSE(s.token.top1);
  EXPECT_TRUE(s.token.margin_flip);
}

// Fault B51: 0 * log 0 and -inf minus -inf are 0; a token that only the scheme rules out makes KL infinite.
TEST(Divergence, MaskedTokensCountAsZero) {
  const std::vector<float> p = {2, 1, -kInf}, q = {1.9F, 1.1F, -kInf};
  for (const TokenScore& s : {score(p, q, 0).token, score_ref(p, q, 0)}) {
    EXPECT_NEAR(s.kl, 0.00405066, 5e-8);  // 1.9 and 1.1 are FP32
    EXPECT_TRUE(std::isfinite(s.tv) && std::isfinite(s.nll) && std::isfinite(s.delta_p));
  }
  for (const std::int64_t count : {3, 17, 1000}) {
    std::vector<float> some = make_input(kNormal, count, 4), none = make_input(kNormal, count, 5);
    some[static_cast<std::size_t>(count) - 1] = -kInf;
    // The reference rules a token out, the scheme doesn't: finite.
    expect_reference(some, none, 0, "masked in the reference");
    // The scheme rules it out, the reference doesn't.
    for (const TokenScore& s : {score(none, some, 0).token, score_ref(none, some, 0)}) {
      EXPECT_EQ(s.kl, kInf);
      EXPECT_TRUE(std::isfinite(s.tv) && std::isfinite(s.nll));
    }
    // It is the target: its NLL is infinite too.
    for (const TokenScore& s : {score(none, some, count - 1).token, score_ref(none, some, count - 1)}) {
      EXPECT_EQ(s.nll, kInf);
      EXPECT_EQ(s.kl, kInf);
    }
  }
}

TEST(Divergence, AFarTokenIsFiniteNotInfinite) {
  const std::vector<float> p = {0, 0, 0}, q = {0, 0, -1e4F};  // q = exp(-10000): 0 in any exponential
  for (const TokenScore& s : {score(p, q, 2).token, score_ref(p, q, 2)}) {
    EXPECT_NEAR(s.kl, 1e4 / 3 + std::log(2.0 / 3), 1e-3);
    EXPECT_NEAR(s.nll, 1e4 + std::log(2.0), 1e-3);
  }
}

TEST(Divergence, NanGivesNan) {
  for (const std::int64_t count : {1, 3, 17, 70, 1000})
    for (const std::int64_t at : {std::int64_t{0}, count / 2, count - 1})
      for (const float fault : {std::nanf(""), kInf}) {  // +inf - inf is NaN
        const std::vector<float> good = make_input(kNormal, count, 6);
        std::vector<float> bad = good;
        bad[static_cast<std::size_t>(at)] = fault;
        const std::string what =
            std::to_string(fault) + " at " + std::to_string(at) + " of " + std::to_string(count);
        for (const TokenScore& s : {score(good, bad, 0).token, score_ref(good, bad, 0)}) {
          EXPECT_TRUE(std::isnan(s.nll)) << what;
          EXPECT_TRUE(std::isnan(s.kl)) << what << ": " << s.kl;
          EXPECT_TRUE(std::isnan(s.tv)) << what;
          EXPECT_TRUE(std::isnan(s.delta_p)) << what;
        }
        EXPECT_TRUE(std::isnan(score(bad, good, 0).reference.nll)) << what;
        for (const TokenScore& s : {score(bad, good, 0).token, score_ref(bad, good, 0)}) {
          EXPECT_TRUE(std::isnan(s.kl)) << what << " in the reference: " << s.kl;
          EXPECT_TRUE(std::isnan(s.tv)) << what << " in the reference";
          EXPECT_TRUE(std::isnan(s.delta_p)) << what << " in the reference";
          EXPECT_TRUE(std::isfinite(s.nll)) << what << ": the scheme's own NLL is sound";
        }
      }
}

struct Tie {
  std::int64_t count, first, second;  // both largest
  const char* reason;
};
constexpr Tie kTies[] = {
    {2, 0, 1, "neighbours"},
    {200, 63, 64, "either side of a step of the search for the largest"},
    {200, 15, 192, "the later one is in the remainder"},
    {3000, 1023, 1024, "either side of a block of the search for its place"},
    {49152, 5, 49151, "far apart"},
};

TEST(Divergence, TiesPickTheFirst) {
  for (const Tie& tie : kTies) {
    std::vector<float> p = make_input(kNormal, tie.count, 7);
    const auto first = static_cast<std::size_t>(tie.first), second = static_cast<std::size_t>(tie.second);
    p[first] = p[second] = 10;
    EXPECT_EQ(score(p, p, 0).reference.top, tie.first) << tie.reason;
    EXPECT_EQ(score(p, p, 0).reference.lead, 0.0) << tie.reason;
    std::vector<float> q = p;
    q[first] = 9;  // now the second alone is largest
    EXPECT_FALSE(score(p, q, 0).token.top1) << tie.reason;
    EXPECT_FALSE(score(p, q, 0).token.margin_flip) << tie.reason << ": the reference had no lead";
    EXPECT_FALSE(score_ref(p, q, 0).top1) << tie.reason;
    q = p;
    q[second] = 9;
    EXPECT_TRUE(score(p, q, 0).token.top1) << tie.reason;
    EXPECT_TRUE(score_ref(p, q, 0).top1) << tie.reason;
  }
}

struct Margin {
  double top, second;  // reference probabilities; a third token has the rest
  std::int64_t scheme_top;
  bool top1, margin_flip;
  const char* reason;
};
constexpr Margin kMargins[] = {
    {0.60, 0.30, 0, true, false, "agreement is never a flip"},
    {0.60, 0.30, 1, false, true, "a lead of 0.3"},
    {0.50, 0.45, 1, false, false, "a lead of 0.05: a coin's toss"},
    {0.451, 0.349, 1, false, true, "a lead of 0.102"},
    {0.449, 0.351, 1, false, false, "a lead of 0.098"},
    {0.46, 0.10, 2, false, false, "the rest is the second: a lead of 0.02"},
    {0.60, 0.10, 2, false, true, "the rest leads by 0.3 over the third"},
};

// In every order of the tokens: the second may lie on either side of the top.
TEST(Divergence, MarginFlipsNeedALeadOfATenth) {
  for (const Margin& m : kMargins) {
    std::vector<float> p, q(3, 0.0F);
    for (const double probability : {m.top, m.second, 1 - m.top - m.second})
      p.push_back(static_cast<float>(std::log(probability)));
    q[static_cast<std::size_t>(m.scheme_top)] = 1;
    std::vector<std::size_t> order = {0, 1, 2};
    do {
      std::vector<float> p_here, q_here;
      for (const std::size_t i : order) p_here.push_back(p[i]), q_here.push_back(q[i]);
      for (const TokenScore& s : {score(p_here, q_here, 0).token, score_ref(p_here, q_here, 0)}) {
        EXPECT_EQ(s.top1, m.top1) << m.reason;
        EXPECT_EQ(s.margin_flip, m.margin_flip) << m.reason << ", order " << order[0] << order[1] << order[2];
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// Adding a constant to all logits changes no distribution: exact in FP32 for a power of two here.
TEST(Divergence, IsBlindToAShiftOfTheLogits) {
  std::vector<float> p, shifted;
  SplitMix64 random(8);
  for (int i = 0; i < 1000; ++i) {
    p.push_back(static_cast<float>(random.next() % 4096) / 256);  // 12 bits: a shift by 1024 stays exact
    shifted.push_back(p.back() + 1024);
  }
  const Scored s = score(p, shifted, 3);
  EXPECT_NEAR(s.token.kl, 0.0, 1e-12);
  EXPECT_EQ(s.token.tv, 0.0);
  EXPECT_EQ(s.token.delta_p, 0.0);
}

}  // namespace
}  // namespace quantmap
