// The small floats: every code, every midpoint, and every float up to what rounding can tell apart.
#include "formats/minifloat.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "formats/fp16.hpp"
#include "formats/fp4_e2m1.hpp"
#include "formats/fp6_e2m3.hpp"
#include "formats/fp6_e3m2.hpp"
#include "formats/fp8_e4m3.hpp"
#include "formats/fp8_e5m2.hpp"
#include "vectors.hpp"

namespace quantmap {
namespace {

using testing::same;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Float>
class MinifloatLaws : public ::testing::Test {
 protected:
  // The non-negative numbers in order, decoded from their codes.
  static std::vector<float> numbers() {
    std::vector<float> values;
    for (std::uint32_t code = 0; code <= Float::kMaxCode; ++code) values.push_back(Float::decode(code));
    return values;
  }
};

struct Names {
  template <class Float>
  static std::string GetName(int) {
    return std::is_same_v<Float, Fp8E4M3>   ? "E4M3"
           : std::is_same_v<Float, Fp8E5M2> ? "E5M2"
           : std::is_same_v<Float, Fp4E2M1> ? "E2M1"
           : std::is_same_v<Float, Fp6E2M3> ? "E2M3"
           : std::is_same_v<Float, Fp6E3M2> ? "E3M2"
                                            : "FP16";
  }
};
using Formats = ::testing::Types<Fp8E4M3, Fp8E5M2, Fp6E2M3, Fp6E3M2, Fp4E2M1, Fp16>;
TYPED_TEST_SUITE(MinifloatLaws, Formats, Names);

TYPED_TEST(MinifloatLaws, EveryCodeReencodesToItself) {
  int checked = 0;
  for (std::uint32_t code = 0; code < 2 * TypeParam::kSign; ++code, ++checked) {
    const float value = TypeParam::decode(code);
    if (std::isnan(value)) {
      EXPECT_EQ(TypeParam::encode(value), TypeParam::kNan);  // one NaN, its sign dropped
      EXPECT_EQ(TypeParam::encode_saturating(value), TypeParam::kNan);
      continue;
    }
    EXPECT_EQ(TypeParam::encode(value), code);
    const std::uint32_t sign = code & TypeParam::kSign;
    EXPECT_EQ(TypeParam::encode_saturating(value), std::isinf(value) ? sign | TypeParam::kMaxCode : code);
  }
  EXPECT_EQ(checked, 1 << TypeParam::kBits);
}

// The formula of the specification, in double, against decode.
TYPED_TEST(MinifloatLaws, DecodeIsTheDefinition) {
  // Counted off the range: the exponent field's width and bias follow from the largest and least numbers.
  const std::vector<float> values = this->numbers();
  const double step = values[1];
  EXPECT_EQ(values[0], 0.0F);
  double quantum = step;
  std::uint32_t per_binade = 1;
  while (values[per_binade + 1] - values[per_binade] == values[1]) ++per_binade;
  per_binade = (per_binade + 1) / 2;  // numbers, then subnormals and the first normal binade share one step
  for (std::uint32_t code = 0; code < values.size(); ++code) {
    const std::uint32_t field = code / per_binade;
    if (field > 1 && code % per_binade == 0) quantum *= 2;
    const double significand = code % per_binade + (field > 0 ? per_binade : 0);
    ASSERT_EQ(static_cast<double>(values[code]), significand * quantum) << code;
    ASSERT_EQ(TypeParam::decode(code | TypeParam::kSign), -values[code]);
  }
  EXPECT_EQ(values.back(), TypeParam::kMax);
}

TYPED_TEST(MinifloatLaws, DecodeIncreasesWithTheCode) {
  const std::vector<float> values = this->numbers();
  for (std::size_t i = 1; i < values.size(); ++i) ASSERT_GT(values[i], values[i - 1]);
}

// Midpoint of each pair of neighbours, and one float either side; ties go to the even code.
TYPED_TEST(MinifloatLaws, RoundsOnceFromFloatToNearestTiesToEven) {
  const std::vector<float> values = this->numbers();
  for (std::uint32_t low = 0; low + 1 < values.size(); ++low) {
    const float middle = (values[low] + values[low + 1]) / 2;  // exact
    const std::uint32_t even = low % 2 == 0 ? low : low + 1;
    const struct {
      float x;
      std::uint32_t code;
    } cases[] = {
        {std::nextafter(middle, 0.0F), low}, {middle, even}, {std::nextafter(middle, kInfinity), low + 1}};
    for (const auto& c : cases) {
      for (const std::uint32_t sign : {0U, TypeParam::kSign}) {
        const float x = sign ? -c.x : c.x;
        ASSERT_EQ(TypeParam::encode_saturating(x), sign | c.code) << x;
        ASSERT_EQ(TypeParam::encode(x), sign | c.code) << x;
      }
      ASSERT_EQ(TypeParam::round_magnitude(c.x), values[c.code]) << c.x;
    }
  }
}

// All floats by their upper 20 bits, and below them nothing, the least and all bits set: the lower 12 bits of
// a float can only break ties in these formats (at most 10 mantissa bits and a guard bit), so this stands for
// 2^32.
TYPED_TEST(MinifloatLaws, ValueDomainEqualsCodeDomainForEveryFloat) {
  constexpr std::uint32_t kCap = 2;
  std::int64_t checked = 0;
  for (std::uint32_t upper = 0; upper < (1U << 20); ++upper) {
    for (const std::uint32_t lower : {0U, 1U, 0x7FFU, 0x800U, 0xFFFU}) {
      const auto x = std::bit_cast<float>(upper << 12 | lower);
      if (!std::isfinite(x)) continue;
      const float magnitude = std::min(std::abs(x), kCap * TypeParam::kMax);
      const float rounded = std::min(TypeParam::round_magnitude(magnitude), TypeParam::kMax);
      ASSERT_TRUE(same(std::copysign(rounded, x), TypeParam::decode(TypeParam::encode_saturating(x)))) << x;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 5 * 2 * 255 * (std::int64_t{1} << 11));
}

TYPED_TEST(MinifloatLaws, EncodeIsMonotone) {
  std::uint32_t last = 0;
  for (std::uint32_t bits = 0; bits < 0x7F800000U; bits += 0x1001) {
    const std::uint32_t code = TypeParam::encode_saturating(std::bit_cast<float>(bits));
    ASSERT_GE(code, last);
    last = code;
  }
}

// faults.md, B01: round first, then compare with the largest number. 464 is E4M3's tie between 448 and the
// slot of NaN and goes to 448; 61440 is E5M2's tie that already overflows.
TEST(Fp8, SaturatesAfterRounding) {
  const struct {
    float x, saturating, ieee;
  } e4m3[] = {{464, 448, 448},   {464.00003F, 448, NAN}, {465, 448, NAN},        {1000, 448, NAN},
              {-465, -448, NAN}, {kInfinity, 448, NAN},  {-kInfinity, -448, NAN}};
  for (const auto& c : e4m3) {
    EXPECT_EQ(Fp8E4M3::decode(Fp8E4M3::encode_saturating(c.x)), c.saturating) << c.x;
    EXPECT_TRUE(same(Fp8E4M3::decode(Fp8E4M3::encode(c.x)), c.ieee)) << c.x;
  }
  const struct {
    float x, saturating, ieee;
  } e5m2[] = {{61439, 57344, 57344},
              {61440, 57344, kInfinity},
              {1e6F, 57344, kInfinity},
              {-1e6F, -57344, -kInfinity}};
  for (const auto& c : e5m2) {
    EXPECT_EQ(Fp8E5M2::decode(Fp8E5M2::encode_saturating(c.x)), c.saturating) << c.x;
    EXPECT_EQ(Fp8E5M2::decode(Fp8E5M2::encode(c.x)), c.ieee) << c.x;
  }
  EXPECT_TRUE(std::isnan(Fp8E4M3::decode(Fp8E4M3::encode_saturating(NAN))));  // NaN is no number
  EXPECT_TRUE(std::isnan(Fp8E5M2::decode(Fp8E5M2::encode_saturating(NAN))));
}

// faults.md, B03: exact ties go to the even code.
TEST(Minifloat, TiesGoToTheEvenCode) {
  const struct { float x, e5m2; } e5m2[] = {{4.5F, 4}, {5.5F, 6}, {6.5F, 6}, {7.5F, 8}, {-4.5F, -4}};
  for (const auto& c : e5m2) EXPECT_EQ(Fp8E5M2::decode(Fp8E5M2::encode_saturating(c.x)), c.e5m2) << c.x;
  const struct {
    float x, e2m1;
  } e2m1[] = {{0.25F, 0}, {0.75F, 1}, {1.25F, 1}, {1.75F, 2}, {2.5F, 2}, {3.5F, 4}, {5, 4}, {7, 6}};
  for (const auto& c : e2m1) EXPECT_EQ(Fp4E2M1::decode(Fp4E2M1::encode_saturating(c.x)), c.e2m1) << c.x;
}

}  // namespace
}  // namespace quantmap
