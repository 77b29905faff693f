// exp_f32 against std::exp in double.
#include "kernels/math/exp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

namespace quantmap {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Distance in units of the last place of FP32 at `exact`; infinity counts as 2^128, the next value there
// would be.
double ulps(float got, double exact) {
  const double g = std::isinf(got) ? 0x1p128 : double{got};
  const double e = std::min(exact, 0x1p128);
  const int exponent = e > 0 ? std::clamp(std::ilogb(e), -126, 127) : -126;
  return std::abs(g - e) / std::ldexp(1.0, exponent - 23);
}

TEST(Exp, IsWithinOneUlpOverAllFloats) {
  constexpr std::uint64_t kStride = 1009;  // a prime: every exponent, both signs, all kinds of significands
  std::int64_t tried = 0, nan = 0;
  double worst = 0;
  float worst_at = 0;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += kStride) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const float got = exp_f32(x);
    ++tried;
    if (std::isnan(x)) {
      ++nan;
      ASSERT_TRUE(std::isnan(got)) << std::hex << bits;
      continue;
    }
    const double distance = ulps(got, std::exp(double{x}));
    ASSERT_TRUE(distance <= 1) << x << ": " << got << ", " << distance << " ulp";
    if (distance > worst) worst = distance, worst_at = x;
  }
  EXPECT_EQ(tried, 4256658);
  EXPECT_GT(nan, 10000);
  EXPECT_GT(worst, 0.4) << "no sweep of values that need rounding";
  RecordProperty("worst_ulp", std::to_string(worst) + " at " + std::to_string(worst_at));
}

// Densely where softmax lives: [-105, 0], every rounding of n ln 2 included.
TEST(Exp, IsWithinOneUlpWhereSoftmaxUsesIt) {
  std::int64_t tried = 0;
  for (double x = -105; x <= 0; x += 1e-4, ++tried) {
    const auto argument = static_cast<float>(x);
    const double distance = ulps(exp_f32(argument), std::exp(double{argument}));
    ASSERT_TRUE(distance <= 1) << argument << ": " << distance << " ulp";
  }
  EXPECT_GT(tried, 1000000);
}

struct Special {
  float x, low, high;  // exp_f32(x) lies in [low, high]
  const char* reason;
};
constexpr Special kSpecials[] = {
    {0.0F, 1.0F, 1.0F, "equal logits must weigh exactly 1"},
    {-0.0F, 1.0F, 1.0F, "the sign of zero changes nothing"},
    {-kInf, 0.0F, 0.0F, "a masked token weighs nothing"},
    {kInf, kInf, kInf, "overflow"},
    {FLT_MAX, kInf, kInf, "the reduction's integer would overflow unbounded"},
    {-FLT_MAX, 0.0F, 0.0F, "likewise below"},
    {88.72283F, 3.40279e38F, 3.4028e38F, "the largest argument with a finite result"},
    {88.72284F, kInf, kInf, "the next float: exp is above 2^128"},
    {89.0F, kInf, kInf, "the bound of the reduction itself"},
    {-87.33655F, 1.1754e-38F, 1.1755e-38F, "near the smallest normal number"},
    {-87.4F, 1.10e-38F, 1.11e-38F, "the first subnormal results: gradual underflow, no flush"},
    {-103.0F, 0x1p-149F, 0x1p-149F, "1.3 times the smallest subnormal"},
    {-103.9F, 0x1p-149F, 0x1p-149F, "0.53 of the smallest subnormal rounds up to it"},
    {-104.1F, 0.0F, 0.0F, "less than half of it rounds to zero"},
    {0x1p-149F, 1.0F, 1.0F, "a subnormal argument"},
    {1.0F, 2.7182816F, 2.7182820F, "e"},
};

TEST(Exp, HoldsAtItsEdges) {
  for (const Special& c : kSpecials) {
    const float got = exp_f32(c.x);
    EXPECT_TRUE(got >= c.low && got <= c.high) << c.reason << ": exp(" << c.x << ") = " << got;
    EXPECT_FALSE(std::signbit(got)) << c.reason;
  }
  EXPECT_TRUE(std::isnan(exp_f32(std::nanf(""))));
  EXPECT_TRUE(std::isnan(exp_f32(-std::nanf(""))));
}

}  // namespace
}  // namespace quantmap
