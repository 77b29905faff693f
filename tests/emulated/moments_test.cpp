#include "kernels/moments/moments.hpp"

#include "emulated/device.hpp"

namespace quantmap {
namespace {

using namespace testing;

class MomentsOn : public ::testing::TestWithParam<InputClass> {};

// Sums of n doubles in another order: n units of double of the sums of sizes. The mean's own error shifts
// each distance; to first order that changes m2 by nothing (distances sum to 0), m3 and m4 by 3 m2 and 4 m3
// times it.
TEST_P(MomentsOn, EqualsItsReferenceWithinRounding) {
  for (const std::int64_t cols : {0, 1, 2, 31, 33, 255, 257, 1000}) {
    constexpr std::int64_t kRows = 2;
    const std::vector<float> x = make_input(GetParam(), kRows * cols, 1);
    const Device<float> in(x);
    const Device<RowMoments> out(kRows);
    emulated::kernels().moments(in.data(), kRows, cols, out.data(), {});
    for (std::int64_t r = 0; r < kRows; ++r) {
      const RowMoments got = out.host()[static_cast<std::size_t>(r)];
      const float* row = x.data() + r * cols;
      const RowMoments want = row_moments_ref(row, cols);
      double size1 = 0, size3 = 0;
      for (std::int64_t c = 0; c < cols; ++c) {
        if (!std::isfinite(row[c])) continue;
        size1 += std::abs(double{row[c]});
        size3 += std::pow(std::abs(row[c] - want.mean), 3);
      }
      const double unit = static_cast<double>(cols + 4) * 0x1p-52;
      const double shift = unit * size1 / std::max<double>(1, static_cast<double>(want.count));
      const std::string what = std::to_string(cols) + " values, row " + std::to_string(r);
      EXPECT_EQ(got.count, want.count) << what;
      EXPECT_LE(std::abs(got.mean - want.mean), shift) << what;
      EXPECT_LE(std::abs(got.m2 - want.m2), unit * want.m2 + static_cast<double>(cols) * shift * shift)
          << what;
      EXPECT_LE(std::abs(got.m3 - want.m3), unit * size3 + 4 * shift * want.m2 + std::pow(shift, 3)) << what;
      EXPECT_LE(std::abs(got.m4 - want.m4), unit * want.m4 + 5 * shift * size3 + std::pow(shift, 4)) << what;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Emulated, MomentsOn, ::testing::ValuesIn(kAllInputs),
                         [](const auto& row) { return as_name(row.param.name); });

}  // namespace
}  // namespace quantmap
