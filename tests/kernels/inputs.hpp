// Inputs that the laws of kernels are tried on, and the comparison with a bound for each value.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "formats/bf16.hpp"

namespace quantmap::testing {

// Unit roundoffs (half an ulp of 1), and the smallest numbers.
inline constexpr double kUnit = 0x1p-24, kUnitBf16 = 0x1p-8;
inline constexpr double kSubnormal = 0x1p-149, kSmallestNormal = 0x1p-126;

struct InputClass {
  const char* name;
  // One value, from a standard normal, a uniform number in (0, 1) and its index.
  float (*value)(float normal, double uniform, std::int64_t index);
};
inline constexpr InputClass kZeros = {"zeros", [](float, double, std::int64_t) { return 0.0F; }};
inline constexpr InputClass kNormal = {"normal", [](float n, double, std::int64_t) { return n; }};
// Student's t with two degrees of freedom: its variance is infinite.
inline constexpr InputClass kHeavyTailed = {"heavy-tailed", [](float n, double u, std::int64_t) {
                                              return static_cast<float>(n / std::sqrt(-std::log(u)));
                                            }};
// As in residual streams: one channel in the thousands among small ones.
inline constexpr InputClass kOutlier = {
    "outlier 12000", [](float n, double, std::int64_t i) { return i % 61 == 5 ? 12000.0F : n; }};
inline constexpr InputClass kDenormal = {"denormal",
                                         [](float n, double, std::int64_t) { return std::ldexp(n, -140); }};
inline constexpr InputClass kInputClasses[] = {kZeros, kNormal, kHeavyTailed, kOutlier, kDenormal};

inline std::vector<float> make_input(const InputClass& kind, std::int64_t count, std::uint64_t seed) {
  std::vector<float> x(static_cast<std::size_t>(count));
  fill_gaussian(seed, x.data(), count);
  SplitMix64 random(seed + 1000);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = kind.value(x[i], random.uniform(), static_cast<std::int64_t>(i));
  return x;
}

inline std::vector<std::uint16_t> as_bf16(std::span<const float> x) {
  std::vector<std::uint16_t> bits;
  for (const float value : x) bits.push_back(bf16_from_float(value));
  return bits;
}

// |got - want| <= bound(i) for every value; NaN fails.
template <typename Bound>
void expect_within(std::span<const float> got, std::span<const float> want, const std::string& what,
                   const Bound& bound) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double diff = std::abs(double{got[i]} - double{want[i]});
    ASSERT_TRUE(diff <= bound(i)) << what << ", value " << i << ": " << got[i] << " instead of " << want[i]
                                  << ", " << diff << " off, " << bound(i) << " allowed";
  }
}

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
           return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
         });
}

}  // namespace quantmap::testing
