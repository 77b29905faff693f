#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/random.hpp"
#include "measure/error_sums.hpp"

namespace quantmap {
namespace {

constexpr double kTolerance = 0.024;  // half a bin of a fiftieth of a decade: 10^0.01 - 1 = 2.33 %
constexpr double kShares[] = {0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0};

// The law of the header, by sorting.
double exact_quantile_of(std::vector<double> values, double f) {
  std::sort(values.begin(), values.end());
  const auto rank =
      static_cast<std::size_t>(std::max(1.0, std::ceil(f * static_cast<double>(values.size()))));
  return values[rank - 1];
}

struct Distribution {
  const char* name;
  double (*value)(double normal, double uniform);
};
constexpr Distribution kDistributions[] = {
    {"log-normal", [](double n, double) { return std::exp(n); }},
    {"uniform", [](double, double u) { return u; }},
    {"over the whole range", [](double, double u) { return std::pow(10.0, 10 * u - 8); }},
    {"relative errors of a good format", [](double n, double) { return 1e-3 * (1 + 0.05 * n); }},
    {"half of them zero", [](double n, double u) { return u < 0.5 ? 0.0 : std::abs(n); }},
    {"powers of ten", [](double, double u) { return std::pow(10.0, std::floor(9 * u) - 7); }},
};

TEST(LogHistogram, QuantilesLieWithinHalfABin) {
  for (const Distribution& d : kDistributions)
    for (const std::int64_t count : {1, 2, 49, 1000, 20000}) {
      std::vector<float> normal(static_cast<std::size_t>(count));
      fill_gaussian(static_cast<std::uint64_t>(count), normal.data(), count);
      SplitMix64 random(7);
      LogHistogram histogram;
      std::vector<double> values;
      for (const float n : normal) {
        values.push_back(d.value(n, random.uniform()));
        histogram.add(values.back());
      }
      EXPECT_EQ(histogram.count(), static_cast<std::uint64_t>(count));
      for (const double f : kShares) {
        const double want = exact_quantile_of(values, f), got = histogram.quantile(f).value_or(NAN);
        EXPECT_TRUE(std::abs(got - want) <= kTolerance * want)
            << d.name << ", " << count << " values, share " << f << ": " << got << " instead of " << want;
      }
    }
}

TEST(LogHistogram, MergingEqualsAddingAll) {
  LogHistogram whole, parts[3], merged;
  SplitMix64 random(8);
  for (int i = 0; i < 999; ++i) {
    const double value = i % 50 == 0 ? NAN : i % 7 == 0 ? 0.0 : std::pow(10.0, 16 * random.uniform() - 11);
    whole.add(value);
    parts[i % 3].add(value);
  }
  for (const LogHistogram& part : parts) merged.merge(part);
  EXPECT_EQ(merged, whole);
  EXPECT_EQ(merged.count(), 999U);
}

TEST(LogHistogram, ValuesOutsideItsRangeKeepTheirOrder) {
  const double inf = std::numeric_limits<double>::infinity();
  LogHistogram histogram;
  for (const double value : {0.0, 5e-324, 1e-9, 0.5, 1e2, 1e300, inf, std::nan("")}) histogram.add(value);
  EXPECT_EQ(histogram.quantile(1.0 / 8), 0.0);
  EXPECT_LE(*histogram.quantile(3.0 / 8), 1.1e-8);
  EXPECT_GT(*histogram.quantile(2.0 / 8), 0.0);
  EXPECT_NEAR(*histogram.quantile(4.0 / 8), 0.5, 0.5 * kTolerance);
  EXPECT_GE(*histogram.quantile(7.0 / 8), 100.0) << "infinity is larger than all, and a number";
  EXPECT_FALSE(histogram.quantile(1.0)) << "NaN counts as largest";
}

TEST(LogHistogram, OfNothingOrOfNanHasNoQuantile) {
  LogHistogram histogram;
  EXPECT_FALSE(histogram.quantile(0.5));
  for (int i = 0; i < 3; ++i) histogram.add(-std::nan(""));
  EXPECT_FALSE(histogram.quantile(0.5));
  EXPECT_EQ(histogram.count(), 3U);
  for (int i = 0; i < 4; ++i) histogram.add(1.0);
  EXPECT_NEAR(*histogram.quantile(0.5), 1.0, kTolerance);
  EXPECT_FALSE(histogram.quantile(0.6)) << "5 of 7 reaches into the NaNs";
}

}  // namespace
}  // namespace quantmap
