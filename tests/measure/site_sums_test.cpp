#include "measure/site_sums.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random.hpp"
#include "measure/divergence_sums.hpp"

namespace quantmap {
namespace {

RowDifference row(const std::vector<float>& x, const std::vector<float>& y) {
  return row_difference(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
}

TEST(MedianAbs, OfAnEvenCountIsTheMeanOfTheMiddleTwo) {
  const std::vector<float> odd = {-3, 1, 2}, even = {-4, 1, 3, -2};
  EXPECT_EQ(median_abs(odd.data(), 3), 2.0);
  EXPECT_EQ(median_abs(even.data(), 4), 2.5);
}

TEST(MedianAbs, EqualsSortingForEverySizeAndScale) {
  SplitMix64 random(5);
  for (const std::size_t size : {1U, 2U, 3U, 10U, 1001U, 4096U})
    for (const int spread : {0, 1, 30}) {
      std::vector<float> x(size);
      for (float& v : x)
        v = static_cast<float>(
            std::ldexp(random.uniform() - 0.5, static_cast<int>(random.next() % 61) * spread / 30));
      if (size > 2) x[1] = -0.0F;
      std::vector<float> sorted = x;
      for (float& v : sorted) v = std::abs(v);
      std::sort(sorted.begin(), sorted.end());
      const double middle = sorted[size / 2];
      EXPECT_EQ(median_abs(x.data(), static_cast<std::int64_t>(size)),
                size % 2 == 1 ? middle : (middle + double{sorted[size / 2 - 1]}) / 2)
          << size << " values, spread " << spread;
    }
}

TEST(SiteSums, RowsWithMassiveActivationsAreLeftOutOfTheRestOnly) {
  SiteSums sums;
  sums.add_row(row({3000, 0}, {2999, 0}), 2, true);
  sums.add_row(row({1, 1}, {0, 0}), 2, false);
  EXPECT_LT(sums.errors().relative_error().value(), 0.001);
  EXPECT_EQ(sums.rest_error(), 1.0);
  EXPECT_EQ(sums.massive_rows(), 1);
  SiteSums only;
  only.add_row(row({3000, 0}, {2999, 0}), 2, true);
  EXPECT_FALSE(only.rest_error()) << "nothing is left";
}

TEST(SiteSums, AZeroReferenceHasErrorZeroOrNone) {
  SiteSums zero, wrong;
  zero.add_row(row({0, 0}, {0, 0}), 2, false);
  EXPECT_EQ(zero.errors().relative_error(), 0.0);
  EXPECT_EQ(zero.rest_error(), 0.0);
  wrong.add_row(row({0, 0}, {1, 0}), 2, false);
  EXPECT_FALSE(wrong.errors().relative_error());
  EXPECT_FALSE(wrong.rest_error());
}

TEST(SiteSums, ErrorAgainstTheStreamNeedsAStream) {
  SiteSums sums;
  sums.add_row(row({3, 4}, {3, 2}), 2, false);
  EXPECT_FALSE(sums.residual_error()) << "null, not zero";
  sums.add_stream(16);
  EXPECT_EQ(sums.residual_error(), 0.5);
  SiteSums more = sums;
  more.merge(sums);
  EXPECT_EQ(more.residual_error(), 0.5);
  more.forget_stream();
  EXPECT_FALSE(more.residual_error());
  SiteSums no_stream;
  no_stream.add_row(row({3, 4}, {3, 2}), 2, false);
  no_stream.add_stream(0);
  EXPECT_FALSE(no_stream.residual_error());
}

TEST(SiteSums, NothingFiniteIsNoSmallError) {
  SiteSums sums;
  sums.add_row(row({1, 2}, {NAN, INFINITY}), 2, false);
  sums.add_stream(5);
  EXPECT_FALSE(sums.errors().relative_error());
  EXPECT_FALSE(sums.rest_error());
  EXPECT_FALSE(sums.residual_error());
  EXPECT_EQ(sums.errors().nonfinite(), 2);
}

TEST(DivergenceSums, MeanIsOverTheFiniteOnes) {
  DivergenceSums sums, other;
  for (const double kl : {0.0, 1.0, 2.0}) sums.add(kl);
  other.add(NAN);
  sums.merge(other);
  EXPECT_EQ(sums.mean(), 1.0);
  EXPECT_EQ(sums.largest(), 2.0);
  EXPECT_EQ(sums.count(), 4);
  EXPECT_EQ(sums.nonfinite(), 1);
  EXPECT_FALSE(other.mean());
}

}  // namespace
}  // namespace quantmap
