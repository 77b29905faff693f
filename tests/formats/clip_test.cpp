// The method `mse`: what it minimizes, and that it does.
#include "formats/clip.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/encoded.hpp"
#include "samples.hpp"

namespace quantmap {
namespace {

using namespace testing;

double power_sum(const float* x, const float* y, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i)
    sum += std::pow(std::abs(static_cast<double>(y[i]) - static_cast<double>(x[i])), 2.4);
  return sum;
}

// Against the C library's pow in double, over every size that a float may have.
TEST(Clip, ErrorIsTheSumOfPowers) {
  for (const int exponent : {-140, -100, -20, 0, 3, 60, 126}) {
    for (const std::int64_t n : {1, 3, 255, 256, 257, 1000}) {
      SplitMix64 random(static_cast<std::uint64_t>(n));
      std::vector<float> x(static_cast<std::size_t>(n)), y(x.size());
      float amax = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = std::ldexp(static_cast<float>(random.uniform() - 0.5), exponent);
        y[i] =
            x[i] + std::ldexp(static_cast<float>(random.uniform() - 0.5), exponent - static_cast<int>(i % 9));
        amax = std::max(amax, std::abs(x[i]));
      }
      int unit = 0;
      std::frexp(amax, &unit);
      const double want = power_sum(x.data(), y.data(), n) * std::exp2(-2.4 * std::clamp(unit, -127, 126));
      const double got = clip_error(x.data(), y.data(), n, amax);
      EXPECT_TRUE(std::abs(got - want) <= 1e-6 * want) << exponent << " " << n << ": " << got << " " << want;
    }
  }
  const float same[] = {1, -2, 3};
  EXPECT_EQ(clip_error(same, same, 3, 3), 0.0);
}

// Section 9 written out once more, in double, for a row of symmetric and of asymmetric codes.
TEST(Clip, IntegersTakeTheBestOfEightyRanges) {
  for (const bool asymmetric : {false, true}) {
    QuantSpec spec = spec_of("int4", Granularity::row);
    spec.asymmetric = asymmetric;
    spec.method = Method::mse;
    int clipped = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const std::vector<float> x = sample(kFiniteSamples[0], {1, 200}, seed);
      float low = 0, high = 0;
      for (const float value : x) low = std::min(low, value), high = std::max(high, value);
      const float amax = std::max(-low, high);
      double least = INFINITY;
      float best = 0;
      for (int i = 0; i < 80; ++i) {
        const auto p = static_cast<float>(1 - i / 100.0);
        const float scale = asymmetric ? (p * high - p * low) / 15 : p * amax / 7.5F;
        const float zero = asymmetric ? std::nearbyint(-(p * low) / scale) : 8;
        std::vector<float> y;
        for (const float value : x)
          y.push_back((std::clamp(std::nearbyint(value / scale) + zero, 0.0F, 15.0F) - zero) * scale);
        const double error = power_sum(x.data(), y.data(), 200);
        if (error < least) least = error, best = scale;
        clipped += i == 79 && best != (asymmetric ? (high - low) / 15 : amax / 7.5F) ? 1 : 0;
      }
      EXPECT_EQ(encode(spec, 1, 200, x.data()).scales[0], best) << seed;
    }
    EXPECT_GT(clipped, 20);  // else nothing was searched
  }
}

TEST(Clip, NeverLeavesMoreErrorThanTheWholeRange) {
  int better = 0;
  for (const NamedSpec& named : all_specs()) {
    if (named.spec.method != Method::mse) continue;
    QuantSpec nearest = named.spec;
    nearest.method = Method::rtn;
    const Shape shape{8, 256};
    const std::vector<float> x = sample(kFiniteSamples[0], shape);
    std::vector<float> a(x.size()), b(x.size());
    quantize_dequantize(named.spec, shape.rows, shape.cols, x.data(), a.data(), nullptr, nullptr);
    quantize_dequantize(nearest, shape.rows, shape.cols, x.data(), b.data(), nullptr, nullptr);
    const double clipped = power_sum(x.data(), a.data(), 8 * 256),
                 whole = power_sum(x.data(), b.data(), 8 * 256);
    EXPECT_LE(clipped, whole * (1 + 1e-9)) << named.name;
    better += clipped < whole ? 1 : 0;
  }
  EXPECT_GT(better, 10);
}

}  // namespace
}  // namespace quantmap
