#include "kernels/hadamard/hadamard.hpp"

#include "emulated/device.hpp"

namespace quantmap {
namespace {

using namespace testing;

struct Shape {
  std::int64_t rows, cols, size;
};
constexpr Shape kShapes[] = {{1, 1, 1}, {2, 2, 2}, {3, 96, 32}, {2, 576, 64}, {1, 1024, 1024}, {2, 512, 256}};

class HadamardOn : public ::testing::TestWithParam<InputClass> {};

// Each of log2(size) rounds is wrong by a unit of what it sums, at most all sizes together; the factor and
// its product by one more each.
TEST_P(HadamardOn, EqualsTheCpuToTheBitAndItsReferenceWithinRounding) {
  for (const Shape& s : kShapes) {
    const std::vector<float> x = make_input(GetParam(), s.rows * s.cols, 1);
    std::vector<float> cpu(x.size()), want(x.size());
    const Device<float> in(x), out(s.rows * s.cols);
    emulated::kernels().hadamard(in.data(), s.rows, s.cols, s.size, out.data(), {});
    hadamard(x.data(), s.rows, s.cols, s.size, cpu.data());
    hadamard_ref(x.data(), s.rows, s.cols, s.size, want.data());
    const std::string what = std::to_string(s.size) + " of " + std::to_string(s.cols);
    expect_bits(out.host(), cpu, what);
    expect_like(out.host(), want, what, [&](std::size_t i) {
      const auto size = static_cast<std::size_t>(s.size), begin = i / size * size;
      double sizes = 0;
      for (std::size_t j = begin; j < begin + size; ++j) sizes += std::abs(double{x[j]});
      const double n = static_cast<double>(s.size);
      return (std::log2(n) + 3) * kUnit * sizes / std::sqrt(n) + kSubnormal;
    });
  }
}

// Orthogonal and symmetric: twice is the identity.
TEST_P(HadamardOn, IsItsOwnInverse) {
  const std::vector<float> x = make_input(GetParam(), 512, 2);
  const Device<float> turned(x);
  for (int twice = 0; twice < 2; ++twice)
    emulated::kernels().hadamard(turned.data(), 2, 256, 256, turned.data(), {});
  double size = 0;
  for (const float value : x) size += std::abs(double{value});
  if (std::string(GetParam().name) == kNonfinite.name) {
    for (const float value : turned.host()) EXPECT_TRUE(std::isnan(value));
    return;
  }
  expect_like(turned.host(), x, "twice", [&](std::size_t) { return 22 * kUnit * size + 16 * kSubnormal; });
}

INSTANTIATE_TEST_SUITE_P(Emulated, HadamardOn, ::testing::ValuesIn(kAllInputs),
                         [](const auto& row) { return as_name(row.param.name); });

TEST(EmulatedHadamard, HandValuesAndRefusals) {
  const Device<float> x(std::vector<float>{1, 2, 3, 4});
  emulated::kernels().hadamard(x.data(), 1, 4, 4, x.data(), {});
  EXPECT_EQ(x.host(), (std::vector<float>{5, -1, -2, 0}));
  for (const std::int64_t size : {0, 3, 8, 16384})
    EXPECT_THROW(emulated::kernels().hadamard(x.data(), 1, 4, size, x.data(), {}), Error) << size;
}

}  // namespace
}  // namespace quantmap
