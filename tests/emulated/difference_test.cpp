#include "kernels/difference/difference.hpp"

#include "emulated/device.hpp"

namespace quantmap {
namespace {

using namespace testing;

class DifferenceOn : public ::testing::TestWithParam<InputClass> {};

// Sums of n doubles in another order: n units of double of the sum of sizes. The rest is exact.
TEST_P(DifferenceOn, EqualsItsReferenceWithinRounding) {
  for (const bool as_x : {true, false})
    for (const std::int64_t cols : {0, 1, 31, 33, 255, 257, 1000}) {
      constexpr std::int64_t kRows = 3;
      const std::vector<float> given = make_input(GetParam(), kRows * cols, 1);
      const std::vector<float> other = make_input(kHeavyTailed, kRows * cols, 2);
      const std::vector<float>&x = as_x ? given : other, &y = as_x ? other : given;
      const Device<float> from(x), to(y);
      const Device<RowDifference> out(kRows);
      emulated::kernels().difference(from.data(), to.data(), kRows, cols, out.data(), {});
      for (std::int64_t r = 0; r < kRows; ++r) {
        const RowDifference got = out.host()[static_cast<std::size_t>(r)];
        const RowDifference want = row_difference_ref(x.data() + r * cols, y.data() + r * cols, cols);
        const std::string what = std::to_string(cols) + " values, row " + std::to_string(r);
        const double unit = static_cast<double>(cols) * 0x1p-52;
        EXPECT_LE(std::abs(got.error2 - want.error2), unit * want.error2) << what;
        EXPECT_LE(std::abs(got.reference2 - want.reference2), unit * want.reference2) << what;
        EXPECT_LE(std::abs(got.value2 - want.value2), unit * want.value2) << what;
        EXPECT_LE(std::abs(got.dot - want.dot), unit * std::sqrt(want.reference2) * std::sqrt(want.value2))
            << what;
        EXPECT_EQ(got.max_error, want.max_error) << what;
        EXPECT_EQ(got.amax, want.amax) << what;
        EXPECT_EQ(got.nonfinite, want.nonfinite) << what;
      }
    }
}

TEST_P(DifferenceOn, OfEqualRowsIsExactlyZero) {
  const Device<float> x(make_input(GetParam(), 577, 3));
  const Device<RowDifference> out(1);
  emulated::kernels().difference(x.data(), x.data(), 1, 577, out.data(), {});
  const RowDifference d = out.host()[0];
  EXPECT_EQ(d.error2, 0.0);
  EXPECT_EQ(d.max_error, 0.0F);
  EXPECT_EQ(d.reference2, d.dot);
  EXPECT_EQ(d.nonfinite > 0, std::string(GetParam().name) == kNonfinite.name);
}

TEST_P(DifferenceOn, PeaksAreTheCpus) {
  for (const std::int64_t cols : {0, 1, 31, 33, 257, 1000}) {
    const std::vector<float> x = make_input(GetParam(), 2 * cols, 1);
    const Device<float> in(x);
    const Device<RowPeak> out(2);
    emulated::kernels().peaks(in.data(), 2, cols, out.data(), {});
    for (std::int64_t r = 0; r < 2; ++r) {
      const RowPeak got = out.host()[static_cast<std::size_t>(r)], want = row_peak(x.data() + r * cols, cols);
      EXPECT_EQ(got.index, want.index) << cols;
      EXPECT_EQ(got.value, want.value) << cols;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Emulated, DifferenceOn, ::testing::ValuesIn(kAllInputs),
                         [](const auto& row) { return as_name(row.param.name); });

}  // namespace
}  // namespace quantmap
