#include "kernels/rope/rope.hpp"

#include "inputs.hpp"

namespace quantmap {
namespace {

using namespace testing;

struct Shape {
  std::int64_t rows, heads, head_dim, gap;
};
constexpr Shape kShapes[] = {
    {1, 1, 2, 0},                                    // one pair
    {1, 3, 20, 0}, {7, 1, 32, 5},                    // no power of two; a row wider than its heads
    {3, 9, 64, 0}, {2, 4, 128, 64}, {65, 2, 18, 1},  // half a head is odd
};

struct Angles {
  std::vector<float> cosines, sines;
};
// Positions up to 4,096 apart, frequencies from 1 down, as tables hold them.
Angles angles(std::int64_t rows, std::int64_t half) {
  Angles a;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < half; ++i) {
      const std::int64_t position = r * 4096 / rows;
      const double angle = static_cast<double>(position) *
                           std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half));
      a.cosines.push_back(static_cast<float>(std::cos(angle)));
      a.sines.push_back(static_cast<float>(std::sin(angle)));
    }
  return a;
}

TEST(Rope, EqualsItsReferenceWithinRounding) {
  for (const InputClass& kind : kInputClasses) {
    for (const Shape& s : kShapes) {
      const std::int64_t half = s.head_dim / 2, stride = s.heads * s.head_dim + s.gap;
      const std::vector<float> x = make_input(kind, s.rows * stride, 1);
      const Angles a = angles(s.rows, half);
      std::vector<float> got = x, want = x;
      rope(got.data(), stride, s.rows, s.heads, s.head_dim, a.cosines.data(), a.sines.data());
      rope_ref(want.data(), stride, s.rows, s.heads, s.head_dim, a.cosines.data(), a.sines.data());
      const std::string what = std::string(kind.name) + ", head_dim " + std::to_string(s.head_dim);
      // Two products, one sum, and the reference's own rounding: 3 units of the larger terms.
      expect_within(got, want, what, [&](std::size_t at) {
        const std::int64_t row = static_cast<std::int64_t>(at) / stride,
                           col = static_cast<std::int64_t>(at) % stride;
        if (col >= s.heads * s.head_dim) return got[at] == x[at] ? 0.0 : -1.0;
        const std::int64_t pair = col % s.head_dim % half,
                           first = row * stride + col / s.head_dim * s.head_dim + pair;
        const double size = std::abs(x[static_cast<std::size_t>(first)]) +
                            std::abs(double{x[static_cast<std::size_t>(first + half)]});
        return 3 * kUnit * size + 2 * kSubnormal;
      });
    }
  }
}

// Half-split layout: pair i is (x[i], x[i + head_dim/2]), not neighbours.
TEST(Rope, TurnsTheHalvesOfAHead) {
  float x[] = {1, 2, 3, 4};
  const float cosines[] = {0, 1}, sines[] = {1, 0};  // a quarter turn of pair 0; pair 1 rests
  rope(x, 4, 1, 1, 4, cosines, sines);
  EXPECT_EQ(x[0], -3.0F);
  EXPECT_EQ(x[1], 2.0F);
  EXPECT_EQ(x[2], 1.0F);
  EXPECT_EQ(x[3], 4.0F);
}

TEST(Rope, AtPositionZeroChangesNoBit) {
  const std::vector<float> x = make_input(kHeavyTailed, 6 * 40, 2);
  const std::vector<float> cosines(6 * 10, 1.0F), sines(6 * 10, 0.0F);
  std::vector<float> turned = x;
  rope(turned.data(), 40, 6, 2, 20, cosines.data(), sines.data());
  EXPECT_TRUE(same_bits(turned, x));
}

}  // namespace
}  // namespace quantmap
