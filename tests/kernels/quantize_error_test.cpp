// Quantize and measure at once against doing the one after the other.
#include "kernels/quantize_error/quantize_error.hpp"

#include <gtest/gtest.h>

#include "formats/samples.hpp"

namespace quantmap {
namespace {

using namespace testing;

bool equal(const RowDifference& a, const RowDifference& b) {
  return a.error2 == b.error2 && a.reference2 == b.reference2 && a.value2 == b.value2 && a.dot == b.dot &&
         a.max_error == b.max_error && a.amax == b.amax && a.nonfinite == b.nonfinite;
}

// Shapes that are cut into pieces (of 4096 values), and that are not.
constexpr Shape kMeasuredShapes[] = {{5, 33}, {9, 65}, {3, 768}, {130, 70}, {3, 5000}};

TEST(QuantizeError, IsQuantizingAndThenMeasuring) {
  for (const NamedSpec& named : all_specs()) {
    for (const Shape& shape : kMeasuredShapes) {
      for (const NamedSample& kind : {kFiniteSamples[0], kFiniteSamples[3], kSpecialSamples[1]}) {
        const std::vector<float> x = sample(kind, shape);
        std::vector<float> q(x.size());
        QuantCounts want_counts;
        quantize_dequantize(named.spec, shape.rows, shape.cols, x.data(), q.data(), nullptr, &want_counts);
        std::vector<RowDifference> got(static_cast<std::size_t>(shape.rows));
        QuantCounts counts;
        quantize_error(named.spec, shape.rows, shape.cols, x.data(), nullptr, got.data(), &counts);
        for (std::int64_t r = 0; r < shape.rows; ++r) {
          const RowDifference want =
              row_difference(x.data() + r * shape.cols, q.data() + r * shape.cols, shape.cols);
          ASSERT_TRUE(equal(got[static_cast<std::size_t>(r)], want))
              << named.name << ", " << kind.name << ", row " << r << " of " << shape.rows << "x"
              << shape.cols;
        }
        if (named.spec.granularity != Granularity::tensor) {  // its zero group is counted once a piece
          ASSERT_EQ(counts, want_counts) << named.name << ", " << kind.name;
        }
      }
    }
  }
}

// Sums in another order, of values that the reference quantizer made bit by bit.
TEST(QuantizeError, AgreesWithItsReference) {
  for (const NamedSpec& named : all_specs()) {
    const Shape shape{4, 300};
    const std::vector<float> x = sample(kFiniteSamples[0], shape);
    RowDifference got[4], want[4];
    QuantCounts got_counts, want_counts;
    quantize_error(named.spec, shape.rows, shape.cols, x.data(), nullptr, got, &got_counts);
    quantize_error_ref(named.spec, shape.rows, shape.cols, x.data(), nullptr, want, &want_counts);
    EXPECT_EQ(got_counts, want_counts) << named.name;
    for (int r = 0; r < 4; ++r) {
      EXPECT_TRUE(std::abs(got[r].error2 - want[r].error2) <= 1e-12 * want[r].error2) << named.name;
      EXPECT_TRUE(std::abs(got[r].dot - want[r].dot) <= 1e-12 * want[r].dot) << named.name;
      EXPECT_EQ(got[r].max_error, want[r].max_error) << named.name;
      EXPECT_EQ(got[r].amax, want[r].amax) << named.name;
    }
  }
}

TEST(QuantizeError, OfNoValuesIsNothing) {
  quantize_error(all_specs()[5].spec, 0, 64, nullptr, nullptr, nullptr, nullptr);
  RowDifference error{1, 1, 1, 1, 1, 1, 1};
  quantize_error(all_specs()[5].spec, 1, 0, nullptr, nullptr, &error, nullptr);
  EXPECT_TRUE(equal(error, RowDifference{}));
}

}  // namespace
}  // namespace quantmap
