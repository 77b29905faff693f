#include "kernels/rms_norm/rms_norm.hpp"

#include "inputs.hpp"

namespace quantmap {
namespace {

using namespace testing;

struct Shape {
  std::int64_t rows, cols, x_gap, out_gap;  // gaps: values between rows
};
constexpr Shape kShapes[] = {
    {1, 1, 0, 0},                                         // one value: x / |x|
    {1, 7, 0, 0},       {3, 15, 2, 0},  {2, 17, 0, 3},    // around the 16 lanes
    {5, 33, 1, 1},      {2, 576, 0, 0}, {1, 1000, 0, 0},  // SmolLM2's width; no multiple of a lane count
    {9, 128, 128, 256},                                   // heads of a wider row (q/k norm)
};
constexpr float kUntouched = 7.5F;

// scale, x * scale, * weight and the reference's own result are each rounded once (4 units); a subnormal
// product loses half of 2^-149, which the weight multiplies.
double bound(double want, double weight) {
  return 4 * kUnit * std::abs(want) + kSubnormal * (std::abs(weight) + 1);
}

TEST(RmsNorm, EqualsItsReferenceWithinRounding) {
  for (const InputClass& kind : kInputClasses) {
    for (const Shape& s : kShapes) {
      for (const float eps : {1e-5F, 1e-6F}) {
        const std::int64_t x_stride = s.cols + s.x_gap, out_stride = s.cols + s.out_gap;
        const std::vector<float> x = make_input(kind, s.rows * x_stride, 1);
        const std::vector<float> weight = make_input(kHeavyTailed, s.cols, 2);
        std::vector<float> got(static_cast<std::size_t>(s.rows * out_stride), kUntouched), want = got;
        rms_norm(x.data(), x_stride, weight.data(), eps, s.rows, s.cols, got.data(), out_stride);
        rms_norm_ref(x.data(), x_stride, weight.data(), eps, s.rows, s.cols, want.data(), out_stride);
        const std::string what =
            std::string(kind.name) + ", " + std::to_string(s.rows) + " x " + std::to_string(s.cols);
        expect_within(got, want, what, [&](std::size_t i) {
          const auto col = static_cast<std::int64_t>(i) % out_stride;
          return col < s.cols ? bound(want[i], weight[static_cast<std::size_t>(col)]) : 0.0;
        });
        for (std::int64_t r = 0; r < s.rows; ++r)
          for (std::int64_t c = s.cols; c < out_stride; ++c)
            ASSERT_EQ(got[static_cast<std::size_t>(r * out_stride + c)], kUntouched)
                << what << ": gap written";
      }
    }
  }
}

TEST(RmsNorm, GivesUnitMeanSquareAndHandValues) {
  const float x[] = {3, -4, 0, 0}, weight[] = {1, 1, 2, 0.5F};
  float out[4];
  rms_norm(x, 4, weight, 0, 1, 4, out, 4);  // mean square 25/4, so 1/2.5
  EXPECT_FLOAT_EQ(out[0], 1.2F);
  EXPECT_FLOAT_EQ(out[1], -1.6F);
  EXPECT_EQ(out[2], 0.0F);
  EXPECT_EQ(out[3], 0.0F);
}

TEST(RmsNorm, InPlaceAndRowByRowGiveTheSameBits) {
  constexpr std::int64_t kRows = 5, kCols = 77;
  const std::vector<float> x = make_input(kOutlier, kRows * kCols, 3), weight = make_input(kNormal, kCols, 4);
  std::vector<float> out(x.size()), in_place = x, single(x.size());
  rms_norm(x.data(), kCols, weight.data(), 1e-6F, kRows, kCols, out.data(), kCols);
  rms_norm(in_place.data(), kCols, weight.data(), 1e-6F, kRows, kCols, in_place.data(), kCols);
  for (std::int64_t r = 0; r < kRows; ++r)
    rms_norm(x.data() + r * kCols, kCols, weight.data(), 1e-6F, 1, kCols, single.data() + r * kCols, kCols);
  EXPECT_TRUE(same_bits(out, in_place));
  EXPECT_TRUE(same_bits(out, single));
}

TEST(RmsNorm, NanStaysInItsRow) {
  constexpr std::int64_t kCols = 40;
  std::vector<float> x = make_input(kNormal, 3 * kCols, 5), weight(kCols, 1.0F), out(x.size());
  x[kCols + 17] = std::nanf("");
  rms_norm(x.data(), kCols, weight.data(), 1e-6F, 3, kCols, out.data(), kCols);
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::isnan(out[i]), i / kCols == 1) << i;
}

}  // namespace
}  // namespace quantmap
