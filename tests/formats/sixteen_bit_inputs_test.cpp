// Every BF16 and every FP16 number through every small element, against a search of its table of values for
// the nearest: a rounding that shares nothing with the codecs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "formats/bf16.hpp"
#include "formats/element.hpp"
#include "formats/fp16.hpp"

namespace quantmap {
namespace {

constexpr Element kElements[] = {Element::e4m3, Element::e5m2, Element::e2m3,
                                 Element::e3m2, Element::e2m1, Element::mx_int8};

// The magnitudes of an element in order, by code, and the slot beyond the largest, where rounding saturates.
template <class Float>
std::vector<double> magnitudes() {
  std::vector<double> values;
  for (std::uint32_t code = 0; values.empty() || values.back() < static_cast<double>(Float::kMax); ++code)
    values.push_back(static_cast<double>(Float::decode(code)));
  return values;
}

// Nearest value, ties to the even code; beyond the range the largest.
double nearest(const std::vector<double>& values, double magnitude) {
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  if (above == values.end()) return values.back();
  if (above == values.begin() || *above == magnitude) return *above;
  const auto below = above - 1;
  const double down = magnitude - *below, up = *above - magnitude;
  if (down != up) return down < up ? *below : *above;
  return (below - values.begin()) % 2 == 0 ? *below : *above;
}

template <class Float>
void expect_nearest(float x, const std::vector<double>& values) {
  if (std::isnan(x)) return;
  const double want = nearest(values, std::abs(static_cast<double>(x)));
  const float got = Float::decode(Float::encode_saturating(x));
  ASSERT_EQ(static_cast<double>(std::abs(got)), want) << x;
  if (want != 0) {
    ASSERT_EQ(std::signbit(got), std::signbit(x)) << x;
  } else {
    ASSERT_EQ(std::signbit(got), std::signbit(x) && Float::kNegativeZero) << x;
  }
  if (std::abs(x) <= Float::kMax) {
    ASSERT_EQ(static_cast<double>(Float::round_magnitude(std::abs(x))), want) << x;
  }
}

TEST(SixteenBitInputs, RoundToTheNearestValueOfEveryElement) {
  for (const Element element : kElements) {
    with_float(element, [](auto type) {
      using Float = decltype(type);
      const std::vector<double> values = magnitudes<Float>();
      for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        expect_nearest<Float>(float_from_bf16(static_cast<std::uint16_t>(bits)), values);
        expect_nearest<Float>(float_from_fp16(static_cast<std::uint16_t>(bits)), values);
        if (::testing::Test::HasFatalFailure()) return;
      }
    });
  }
}

// Midpoints of neighbours and the floats beside them, of every element.
TEST(SixteenBitInputs, MidpointsAndTheirNeighboursToo) {
  for (const Element element : kElements) {
    with_float(element, [](auto type) {
      using Float = decltype(type);
      const std::vector<double> values = magnitudes<Float>();
      for (std::size_t i = 0; i + 1 < values.size(); ++i) {
        const auto middle = static_cast<float>((values[i] + values[i + 1]) / 2);
        for (const float x : {std::nextafter(middle, 0.0F), middle, std::nextafter(middle, INFINITY)}) {
          expect_nearest<Float>(x, values);
          expect_nearest<Float>(-x, values);
        }
      }
    });
  }
}

TEST(SixteenBitInputs, CodesOfMxint8ReencodeToThemselves) {
  for (int code = -127; code <= 127; ++code) {
    const auto byte = static_cast<std::uint8_t>(static_cast<std::int8_t>(code));
    EXPECT_EQ(MxInt8::encode_saturating(MxInt8::decode(byte)), byte) << code;
    EXPECT_EQ(MxInt8::decode(byte), static_cast<float>(code) / 64) << code;
  }
}

}  // namespace
}  // namespace quantmap
