// Errors that bitsandbytes expects of its own NF4 and FP4 on N(0,1) values (tests/test_functional.py of
// 0.50.2: mean and standard deviation over 200 runs of 1024 x 1024 values).
#include <gtest/gtest.h>

#include <cmath>

#include "core/random.hpp"
#include "formats/element.hpp"
#include "samples.hpp"

namespace quantmap {
namespace {

using namespace testing;

struct Expected {
  const char* id;
  std::int32_t block;
  double absolute, absolute_sd, relative, relative_sd;  // mean |e|, mean |e| / (|x| + 1e-8); sd in 1e-6
};
constexpr Expected kExpected[] = {
    {"nf4", 32, 0.067746, 69, 0.189726, 304},        {"nf4", 64, 0.072798, 74, 0.203339, 340},
    {"nf4", 128, 0.076831, 91, 0.215237, 391},       {"nf4", 256, 0.080337, 102, 0.226105, 398},
    {"nf4", 1024, 0.086610, 187, 0.245370, 600},     {"nf4", 4096, 0.092547, 360, 0.262473, 999},
    {"bnb_fp4", 32, 0.088925, 91, 0.242443, 330},    {"bnb_fp4", 64, 0.096543, 111, 0.260125, 379},
    {"bnb_fp4", 128, 0.102969, 134, 0.275817, 433},  {"bnb_fp4", 256, 0.108684, 182, 0.289831, 497},
    {"bnb_fp4", 1024, 0.119333, 320, 0.315000, 757}, {"bnb_fp4", 4096, 0.129536, 612, 0.337169, 1239},
};

// The block is the registry row's, so a row with another block is the same format with another block. One run
// of ours, so three standard deviations.
TEST(BitsAndBytes, ErrorsAreThoseOfItsOwnTests) {
  constexpr std::int64_t kSide = 1024;
  std::vector<float> x(kSide * kSide), y(x.size());
  fill_gaussian(7, x.data(), kSide * kSide);
  for (const Expected& want : kExpected) {
    Format format = *find_format(want.id);
    format.block = want.block;
    QuantSpec spec;
    spec.format = &format;
    quantize_dequantize(spec, kSide, kSide, x.data(), y.data(), nullptr, nullptr);
    double absolute = 0, relative = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = std::abs(static_cast<double>(y[i]) - static_cast<double>(x[i]));
      absolute += error;
      relative += error / (std::abs(static_cast<double>(x[i])) + 1e-8);
    }
    const auto values = static_cast<double>(x.size());
    EXPECT_TRUE(std::abs(absolute / values - want.absolute) <= 3e-6 * want.absolute_sd)
        << want.id << " " << want.block << ": " << absolute / values;
    EXPECT_TRUE(std::abs(relative / values - want.relative) <= 3e-6 * want.relative_sd)
        << want.id << " " << want.block << ": " << relative / values;
  }
}

// Every level is a fixed point, and a tie between two goes to the lower.
TEST(BitsAndBytes, LevelsReencodeAndTiesGoToTheLower) {
  for (const Element element : {Element::nf4, Element::bnb_fp4}) {
    with_codebook(element, [](auto codebook) {
      using Book = decltype(codebook);
      for (std::size_t i = 0; i < Book::kCount; ++i) {
        const std::uint32_t code = Book::encode(Book::kLevels[i]);
        EXPECT_EQ(Book::decode(code), Book::kLevels[i]);
        EXPECT_EQ(Book::round(Book::kLevels[i]), Book::kLevels[i]);
        if (i + 1 == Book::kCount) continue;
        const float middle = Book::kMidpoints[i];
        EXPECT_EQ(Book::decode(Book::encode(middle)), Book::kLevels[i]);
        EXPECT_EQ(Book::decode(Book::encode(std::nextafter(middle, 2.0F))), Book::kLevels[i + 1]);
        EXPECT_EQ(Book::decode(Book::encode(std::nextafter(middle, -2.0F))), Book::kLevels[i]);
      }
    });
  }
}

}  // namespace
}  // namespace quantmap
