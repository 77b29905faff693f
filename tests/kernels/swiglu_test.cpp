#include "kernels/swiglu/swiglu.hpp"

#include "inputs.hpp"

namespace quantmap {
namespace {

using namespace testing;

struct Shape {
  std::int64_t rows, cols, gate_gap, up_gap, out_gap;
};
constexpr Shape kShapes[] = {
    {1, 1, 0, 0, 0},    {3, 15, 0, 2, 1},   {2, 17, 5, 0, 0},
    {4, 1536, 0, 0, 0}, {5, 96, 96, 96, 0},  // gate and up are halves of one product
};

// exp 1 ulp (2 units), sum, quotient, product and the reference's own rounding: 6 units. Where exp(-g)
// overflows FP32 (g < -88.72) the gate becomes 0 instead of at most 2.61e-37, and a subnormal gate keeps
// fewer bits.
double bound(double want, double up) {
  return 6 * kUnit * std::abs(want) + 2.61e-37 * std::abs(up) + kSubnormal;
}

TEST(Swiglu, EqualsItsReferenceWithinRounding) {
  for (const InputClass& gate_kind : kInputClasses) {
    for (const InputClass& up_kind : kInputClasses) {
      for (const Shape& s : kShapes) {
        const std::int64_t gate_stride = s.cols + s.gate_gap, up_stride = s.cols + s.up_gap;
        const std::int64_t out_stride = s.cols + s.out_gap;
        const std::vector<float> gate = make_input(gate_kind, s.rows * gate_stride, 1);
        const std::vector<float> up = make_input(up_kind, s.rows * up_stride, 2);
        std::vector<float> got(static_cast<std::size_t>(s.rows * out_stride), 7.5F), want = got;
        swiglu(gate.data(), gate_stride, up.data(), up_stride, s.rows, s.cols, got.data(), out_stride);
        swiglu_ref(gate.data(), gate_stride, up.data(), up_stride, s.rows, s.cols, want.data(), out_stride);
        expect_within(got, want, std::string(gate_kind.name) + " gate, " + up_kind.name + " up",
                      [&](std::size_t at) {
                        const std::int64_t row = static_cast<std::int64_t>(at) / out_stride;
                        const std::int64_t col = static_cast<std::int64_t>(at) % out_stride;
                        if (col >= s.cols) return got[at] == 7.5F ? 0.0 : -1.0;  // a gap stays as it was
                        return bound(want[at], up[static_cast<std::size_t>(row * up_stride + col)]);
                      });
      }
    }
  }
}

// Gates over the whole range of the sigmoid, both tails included.
TEST(Swiglu, HoldsInTheTails) {
  std::vector<float> gate, up;
  for (float g = -200; g <= 200; g += 0.0625F) {
    gate.push_back(g);
    up.push_back(1.0F);
  }
  std::vector<float> got(gate.size()), want(gate.size());
  const auto count = static_cast<std::int64_t>(gate.size());
  swiglu(gate.data(), count, up.data(), count, 1, count, got.data(), count);
  swiglu_ref(gate.data(), count, up.data(), count, 1, count, want.data(), count);
  expect_within(got, want, "tails", [&](std::size_t i) { return bound(want[i], 1); });
  EXPECT_EQ(got.back(), 200.0F);
  EXPECT_EQ(got.front(), 0.0F);
}

TEST(Swiglu, IntoItsGateGivesTheSameBits) {
  const std::vector<float> gate = make_input(kHeavyTailed, 4 * 100, 3), up = make_input(kOutlier, 4 * 100, 4);
  std::vector<float> out(gate.size()), in_place = gate;
  swiglu(gate.data(), 100, up.data(), 100, 4, 100, out.data(), 100);
  swiglu(in_place.data(), 100, up.data(), 100, 4, 100, in_place.data(), 100);
  EXPECT_TRUE(same_bits(out, in_place));
}

TEST(Swiglu, NanStaysWhereItIs) {
  std::vector<float> gate(40, 1.0F), up(40, 2.0F), out(40);
  gate[7] = std::nanf("");
  up[20] = std::nanf("");
  swiglu(gate.data(), 40, up.data(), 40, 1, 40, out.data(), 40);
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::isnan(out[i]), i == 7 || i == 20) << i;
}

}  // namespace
}  // namespace quantmap
