#include "kernels/swiglu/swiglu.hpp"

#include "emulated/device.hpp"

namespace quantmap {
namespace {

using namespace testing;

struct Shape {
  std::int64_t rows, cols, gate_gap, up_gap, out_gap;
};
constexpr Shape kShapes[] = {
    {1, 1, 0, 0, 0},    {3, 31, 0, 2, 1},   {2, 257, 5, 0, 0},
    {2, 1536, 0, 0, 0}, {5, 96, 96, 96, 0},  // gate and up are halves of one product
};

class SwigluOn : public ::testing::TestWithParam<InputClass> {};

// The bound as on the CPU (tests/kernels/swiglu_test.cpp).
TEST_P(SwigluOn, EqualsTheCpuToTheBitAndItsReferenceWithinRounding) {
  for (const bool in_gate : {true, false})
    for (const Shape& s : kShapes) {
      const std::int64_t gate_stride = s.cols + s.gate_gap, up_stride = s.cols + s.up_gap;
      const std::int64_t out_stride = s.cols + s.out_gap;
      const std::vector<float> gate = make_input(in_gate ? GetParam() : kNormal, s.rows * gate_stride, 1);
      const std::vector<float> up = make_input(in_gate ? kHeavyTailed : GetParam(), s.rows * up_stride, 2);
      std::vector<float> cpu(static_cast<std::size_t>(s.rows * out_stride), 7.5F), want = cpu;
      const Device<float> g(gate), u(up), out(cpu);
      emulated::kernels().swiglu(g.data(), gate_stride, u.data(), up_stride, s.rows, s.cols, out.data(),
                                 out_stride, {});
      swiglu(gate.data(), gate_stride, up.data(), up_stride, s.rows, s.cols, cpu.data(), out_stride);
      swiglu_ref(gate.data(), gate_stride, up.data(), up_stride, s.rows, s.cols, want.data(), out_stride);
      const std::string what = std::to_string(s.rows) + " x " + std::to_string(s.cols);
      expect_bits(out.host(), cpu, what);
      expect_like(out.host(), want, what, [&](std::size_t i) {
        const auto row = static_cast<std::int64_t>(i) / out_stride,
                   col = static_cast<std::int64_t>(i) % out_stride;
        if (col >= s.cols) return 0.0;
        return 6 * kUnit * std::abs(want[i]) +
               2.61e-37 * std::abs(up[static_cast<std::size_t>(row * up_stride + col)]) + kSubnormal;
      });
    }
}

INSTANTIATE_TEST_SUITE_P(Emulated, SwigluOn, ::testing::ValuesIn(kAllInputs),
                         [](const auto& row) { return as_name(row.param.name); });

}  // namespace
}  // namespace quantmap
