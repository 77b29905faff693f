#include "kernels/rope/rope.hpp"

#include "emulated/device.hpp"

namespace quantmap {
namespace {

using namespace testing;

struct Shape {
  std::int64_t rows, heads, head_dim, gap;
};
constexpr Shape kShapes[] = {
    {1, 1, 2, 0},                                    // one pair
    {7, 1, 32, 5},  {3, 9, 64, 0}, {2, 4, 128, 64},  // a row wider than its heads
    {33, 3, 18, 1},                                  // half a head is odd
};

class RopeOn : public ::testing::TestWithParam<InputClass> {};

// Two products, one sum and the reference's own rounding: 3 units of the larger terms.
TEST_P(RopeOn, EqualsTheCpuToTheBitAndItsReferenceWithinRounding) {
  for (const Shape& s : kShapes) {
    const std::int64_t half = s.head_dim / 2, stride = s.heads * s.head_dim + s.gap;
    const std::vector<float> x = make_input(GetParam(), s.rows * stride, 1);
    std::vector<float> cosines, sines;
    for (std::int64_t i = 0; i < s.rows * half; ++i) {
      cosines.push_back(static_cast<float>(std::cos(static_cast<double>(i))));
      sines.push_back(static_cast<float>(std::sin(static_cast<double>(i))));
    }
    const Device<float> turned(x), c(cosines), n(sines);
    emulated::kernels().rope(turned.data(), stride, s.rows, s.heads, s.head_dim, c.data(), n.data(), {});
    std::vector<float> cpu = x, want = x;
    rope(cpu.data(), stride, s.rows, s.heads, s.head_dim, cosines.data(), sines.data());
    rope_ref(want.data(), stride, s.rows, s.heads, s.head_dim, cosines.data(), sines.data());
    const std::string what = "head_dim " + std::to_string(s.head_dim);
    const std::vector<float> got = turned.host();
    expect_bits(got, cpu, what);
    if (GetParam().name == kNonfinite.name) continue;  // complex products have rules of their own for Inf
    expect_like(got, want, what, [&](std::size_t at) {
      const auto row = static_cast<std::int64_t>(at) / stride, col = static_cast<std::int64_t>(at) % stride;
      if (col >= s.heads * s.head_dim) return 0.0;
      const std::int64_t first = row * stride + col / s.head_dim * s.head_dim + col % s.head_dim % half;
      return 3 * kUnit *
                 (std::abs(double{x[static_cast<std::size_t>(first)]}) +
                  std::abs(double{x[static_cast<std::size_t>(first + half)]})) +
             2 * kSubnormal;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Emulated, RopeOn, ::testing::ValuesIn(kAllInputs),
                         [](const auto& row) { return as_name(row.param.name); });

}  // namespace
}  // namespace quantmap
