#include "kernels/rms_norm/rms_norm.hpp"

#include "emulated/device.hpp"

namespace quantmap {
namespace {

using namespace testing;

struct Shape {
  std::int64_t rows, cols, x_gap, out_gap;  // gaps: values between rows
};
constexpr Shape kShapes[] = {
    {1, 1, 0, 0},                     // one value
    {3, 31, 2, 0},  {2, 33, 0, 3},    // around a warp
    {2, 255, 1, 1}, {1, 257, 0, 0},   // around a block
    {2, 576, 0, 0}, {1, 1000, 0, 0},  // SmolLM2's width; no multiple of a warp
};

class RmsNormOn : public ::testing::TestWithParam<InputClass> {};

// As on the CPU (tests/kernels/rms_norm_test.cpp): 4 roundings, and half of 2^-149 of a subnormal product.
TEST_P(RmsNormOn, EqualsItsReferenceWithinRounding) {
  for (const Shape& s : kShapes) {
    const std::int64_t x_stride = s.cols + s.x_gap, out_stride = s.cols + s.out_gap;
    const std::vector<float> x = make_input(GetParam(), s.rows * x_stride, 1);
    const std::vector<float> weight = make_input(kHeavyTailed, s.cols, 2);
    std::vector<float> want(static_cast<std::size_t>(s.rows * out_stride), 7.5F);
    const Device<float> in(x), factors(weight), out(want);
    emulated::kernels().rms_norm(in.data(), x_stride, factors.data(), 1e-6F, s.rows, s.cols, out.data(),
                                 out_stride, {});
    rms_norm_ref(x.data(), x_stride, weight.data(), 1e-6F, s.rows, s.cols, want.data(), out_stride);
    const std::string what = std::to_string(s.rows) + " x " + std::to_string(s.cols);
    expect_like(out.host(), want, what, [&](std::size_t i) {
      const auto col = static_cast<std::int64_t>(i) % out_stride;
      if (col >= s.cols) return 0.0;
      return 4 * kUnit * std::abs(want[i]) +
             kSubnormal * (std::abs(weight[static_cast<std::size_t>(col)]) + 1);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Emulated, RmsNormOn, ::testing::ValuesIn(kAllInputs),
                         [](const auto& row) { return as_name(row.param.name); });

}  // namespace
}  // namespace quantmap
