#include "kernels/percentile/percentile.hpp"

#include "emulated/device.hpp"

namespace quantmap {
namespace {

using namespace testing;

class PercentileOn : public ::testing::TestWithParam<InputClass> {};

TEST_P(PercentileOn, EqualsTheCpuAndItsReferenceToTheBit) {
  for (const double fraction : {1e-9, 0.5, 0.999, 1.0})
    for (const std::int64_t cols : {0, 1, 31, 257, 1000}) {
      const std::vector<float> x = make_input(GetParam(), 2 * cols, 1);
      const Device<float> in(x), out(2);
      emulated::kernels().percentiles(in.data(), 2, cols, fraction, out.data(), {});
      std::vector<float> cpu(2), want(2);
      percentiles(x.data(), 2, cols, fraction, cpu.data());
      percentiles_ref(x.data(), 2, cols, fraction, want.data());
      const std::string what = std::to_string(fraction) + " of " + std::to_string(cols);
      expect_bits(out.host(), want, what);
      expect_bits(cpu, want, what + ", CPU");
    }
}

INSTANTIATE_TEST_SUITE_P(Emulated, PercentileOn, ::testing::ValuesIn(kAllInputs),
                         [](const auto& row) { return as_name(row.param.name); });

TEST(EmulatedPercentile, HandValues) {
  const float nan = std::nanf("");
  const Device<float> x(std::vector<float>{-4, 1, 3, -2, nan, nan, nan, nan}), out(2);
  for (const auto& [fraction, want] : {std::pair{0.25, 1.0F}, {0.26, 2.0F}, {0.5, 2.0F}, {0.99, 4.0F}}) {
    emulated::kernels().percentiles(x.data(), 2, 4, fraction, out.data(), {});
    EXPECT_EQ(out.host()[0], want) << fraction;
    EXPECT_TRUE(std::isnan(out.host()[1])) << "no value is finite";
  }
}

}  // namespace
}  // namespace quantmap
