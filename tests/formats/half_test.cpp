// BF16 and FP16: all 65,536 inputs against another formulation, and rounding from float at every boundary.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "formats/bf16.hpp"
#include "formats/fp16.hpp"
#include "formats/row_kernels.hpp"
#include "vectors.hpp"

namespace quantmap {
namespace {

using testing::same;

// (-1)^s * (1 + M/2^m) * 2^(E-bias), in double by ldexp: nothing in common with the codecs.
double by_definition(std::uint32_t bits, int mantissa_bits, int bias) {
  const int exponent_bits = 15 - mantissa_bits;
  const int mantissa = static_cast<int>(bits & ((1U << mantissa_bits) - 1));
  const int exponent = static_cast<int>((bits >> mantissa_bits) & ((1U << exponent_bits) - 1));
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa ? NAN : sign * std::numeric_limits<double>::infinity();
  const int significand = mantissa + (exponent > 0 ? 1 << mantissa_bits : 0);
  return sign * std::ldexp(significand, std::max(exponent, 1) - bias - mantissa_bits);
}

struct Half {
  const char* name;
  int mantissa_bits, bias;
  float (*decode)(std::uint16_t);
  std::uint16_t (*encode)(float);
  float (*round)(float);
};
const Half kHalves[] = {
    {"bf16", 7, 127, [](std::uint16_t b) { return float_from_bf16(b); },
     [](float x) { return bf16_from_float(x); }, [](float x) { return round_to_bf16(x); }},
    {"fp16", 10, 15, [](std::uint16_t b) { return float_from_fp16(b); },
     [](float x) { return fp16_from_float(x); }, [](float x) { return round_to_fp16(x); }},
};

TEST(Half, DecodesEveryCodeByItsDefinition) {
  for (const Half& half : kHalves) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const float got = half.decode(static_cast<std::uint16_t>(bits));
      const double want = by_definition(bits, half.mantissa_bits, half.bias);
      ASSERT_TRUE(std::isnan(want)
                      ? std::isnan(got)
                      : static_cast<double>(got) == want && std::signbit(got) == std::signbit(want))
          << half.name << " " << bits;
    }
  }
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {  // the generic decoder agrees with the fast one
    ASSERT_TRUE(same(Fp16::decode(bits), float_from_fp16(static_cast<std::uint16_t>(bits)))) << bits;
  }
}

TEST(Half, EveryCodeReencodesToItself) {
  for (const Half& half : kHalves) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const float value = half.decode(static_cast<std::uint16_t>(bits));
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(half.decode(half.encode(value)))) << half.name << " " << bits;
      } else {
        ASSERT_EQ(half.encode(value), bits) << half.name;
      }
      ASSERT_TRUE(same(half.round(value), value)) << half.name << " " << bits;
    }
  }
}

// Between every two neighbours, the last being Inf: the midpoint goes to the even code, one float less or
// more to the nearer one.
TEST(Half, RoundsToNearestTiesToEven) {
  for (const Half& half : kHalves) {
    const std::uint32_t infinity = 0x7FFFU & ~((1U << half.mantissa_bits) - 1);
    for (std::uint32_t low = 0; low < infinity; ++low) {
      const double below = by_definition(low, half.mantissa_bits, half.bias);
      const double above = low + 1 == infinity
                               ? 2 * below - by_definition(low - 1, half.mantissa_bits, half.bias)
                               : by_definition(low + 1, half.mantissa_bits, half.bias);
      const auto middle = static_cast<float>((below + above) / 2);
      const std::uint32_t even = low % 2 == 0 ? low : low + 1;
      const struct {
        float x;
        std::uint32_t code;
      } cases[] = {{std::nextafter(middle, 0.0F), low},
                   {middle, even},
                   {std::nextafter(middle, std::numeric_limits<float>::infinity()), low + 1}};
      for (const auto& c : cases) {
        ASSERT_EQ(half.encode(c.x), c.code) << half.name << " " << c.x;
        ASSERT_EQ(half.encode(-c.x), 0x8000U | c.code) << half.name << " " << -c.x;
        ASSERT_TRUE(same(half.round(c.x), half.decode(static_cast<std::uint16_t>(c.code))))
            << half.name << " " << c.x;
        ASSERT_TRUE(same(half.round(-c.x), -half.decode(static_cast<std::uint16_t>(c.code)))) << half.name;
      }
    }
  }
}

TEST(Half, PackingCountsWhatBf16CannotHoldAsNormal) {
  const float infinity = std::numeric_limits<float>::infinity();
  const struct {
    float x;
    bool outside;
    const char* reason;
  } cases[] = {
      {0.0F, false, "zero"},
      {-0.0F, false, "minus zero"},
      {1.0F, false, "a number"},
      {0x1p-126F, false, "the least normal number"},
      {-0x1.FFFFFCp-127F, true, "the largest subnormal"},
      {0x1p-149F, true, "rounds to zero, but is not zero"},
      {0x1.FEp127F, false, "the largest number"},
      {-0x1.FEFFFEp127F, false, "rounds to the largest number"},
      {0x1.FFp127F, true, "rounds to Inf"},
      {infinity, true, "Inf"},
      {NAN, true, "NaN"},
  };
  for (const auto& c : cases) {
    std::uint16_t bits = 0;
    EXPECT_EQ(pack_bf16(&c.x, 1, &bits), c.outside ? 1 : 0) << c.reason;
    EXPECT_TRUE(same(float_from_bf16(bits), round_to_bf16(c.x))) << c.reason;
  }
}

}  // namespace
}  // namespace quantmap
