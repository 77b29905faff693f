#include "core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/sum.hpp"

namespace quantmap {
namespace {

// Steele, Lea and Flood's generator, seed 1234567: the first outputs of its reference implementation.
TEST(SplitMix64, ReferenceOutputs) {
  SplitMix64 random(1234567);
  for (const std::uint64_t wanted : {6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                                     4593380528125082431U, 16408922859458223821U})
    EXPECT_EQ(random.next(), wanted);
}

TEST(SplitMix64, UniformStaysInsideZeroAndOne) {
  SplitMix64 random(3);
  for (int i = 0; i < 100000; ++i) {
    const double u = random.uniform();
    ASSERT_TRUE(u > 0 && u < 1);
  }
}

// formats.md, section 13 (vectors/gaussian.json): the sample that every golden file is made from. 1024 x 4096
// there.
TEST(Gaussian, PortableSampleBitForBit) {
  constexpr std::int64_t kCount = std::int64_t{1024} * 4096;
  std::vector<float> sample(kCount);
  fill_gaussian(42, sample.data(), kCount);
  const std::uint32_t first[] = {0x3ed45626, 0x3f27161e, 0xbf6452a8, 0x3fa9d5af,
                                 0x3fdd634e, 0xbff113cd, 0x3f0badc8, 0xbfd41332};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(std::bit_cast<std::uint32_t>(sample[i]), first[i]) << i;
  const std::uint32_t last[] = {0xbd87a419, 0xbef92a83, 0xbef6b463, 0xbecd123a};
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(sample[sample.size() - 4 + i]), last[i]) << i;
  Sum squares;
  float largest = 0;
  for (const float value : sample) {
    squares.add(static_cast<double>(value) * value);
    largest = std::max(largest, std::abs(value));
  }
  EXPECT_TRUE(std::abs(squares.value() / 4196604.686823184 - 1) <= 1e-12) << squares.value();
  EXPECT_EQ(largest, 5.427959442138672F);
}

TEST(Gaussian, AShorterSampleIsTheStartOfALongerOne) {
  std::vector<float> whole(101);
  fill_gaussian(9, whole.data(), 101);
  for (const std::int64_t count : {0, 1, 2, 7, 100}) {
    std::vector<float> part(static_cast<std::size_t>(count) + 1, -77.0F);
    fill_gaussian(9, part.data(), count);
    for (std::int64_t i = 0; i < count; ++i)
      EXPECT_EQ(part[static_cast<std::size_t>(i)], whole[static_cast<std::size_t>(i)]);
    EXPECT_EQ(part.back(), -77.0F) << "written past the end, count " << count;
  }
}

}  // namespace
}  // namespace quantmap
