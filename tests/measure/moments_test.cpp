#include "measure/moments.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random.hpp"

namespace quantmap {
namespace {

// The definition, in long double, by two passes.
double kurtosis_of(const std::vector<float>& x) {
  long double mean = 0, m2 = 0, m4 = 0;
  for (const float value : x) mean += value;
  mean /= static_cast<long double>(x.size());
  for (const float value : x) {
    const long double d = value - mean;
    m2 += d * d;
    m4 += d * d * d * d;
  }
  return static_cast<double>(static_cast<long double>(x.size()) * m4 / (m2 * m2));
}

Moments merged(const std::vector<float>& x, std::size_t part) {
  Moments moments;
  for (std::size_t begin = 0; begin < x.size(); begin += part)
    moments.merge(row_moments(x.data() + begin, static_cast<std::int64_t>(std::min(part, x.size() - begin))));
  return moments;
}

TEST(Moments, MergedPartsGiveTheKurtosisOfTheWhole) {
  std::vector<float> x(3001);
  fill_gaussian(5, x.data(), 3001);
  for (const float mean : {0.0F, 1000.0F}) {  // raw fourth powers would lose everything at the second
    std::vector<float> shifted = x;
    for (float& value : shifted) value += mean;
    const double want = kurtosis_of(shifted);
    for (const std::size_t part : {1U, 2U, 7U, 64U, 3001U})
      EXPECT_NEAR(merged(shifted, part).kurtosis().value(), want, 1e-9 * want)
          << mean << ", parts of " << part;
  }
  x[17] = 3000;  // a massive value
  EXPECT_NEAR(merged(x, 64).kurtosis().value(), kurtosis_of(x), 1e-9 * kurtosis_of(x));
}

TEST(Moments, KnownKurtoses) {
  EXPECT_DOUBLE_EQ(merged({-1, 1, -1, 1}, 3).kurtosis().value(), 1.0);  // the least there is
  EXPECT_NEAR(merged({0, 0, 0, 4}, 1).kurtosis().value(), 7.0 / 3, 1e-12);
  EXPECT_FALSE(merged({5, 5, 5}, 2).kurtosis()) << "a constant has none";
  EXPECT_FALSE(Moments{}.kurtosis());
  EXPECT_FALSE(merged({NAN, INFINITY}, 1).kurtosis());
}

}  // namespace
}  // namespace quantmap
