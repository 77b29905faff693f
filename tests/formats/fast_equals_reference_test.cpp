// The vectorized quantizers against encode and decode, value by value.
#include <gtest/gtest.h>

#include "formats/bf16.hpp"
#include "formats/encoded.hpp"
#include "samples.hpp"
#include "vectors.hpp"

namespace quantmap {
namespace {

using namespace testing;

void expect_same(const NamedSpec& named, const char* kind, const Shape& shape, const std::vector<float>& got,
                 const std::vector<float>& want) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(same(got[i], want[i]))
        << named.name << ", " << kind << ", " << shape.rows << "x" << shape.cols << ", value " << i << ": "
        << got[i] << " instead of " << want[i];
  }
}

void expect_fast_is_reference(const NamedSpec& named, const NamedSample& kind, const Shape& shape,
                              const TensorRange* range) {
  const std::vector<float> x = sample(kind, shape);
  std::vector<float> got(x.size());
  std::vector<float> want(x.size());
  QuantCounts got_counts;
  QuantCounts want_counts;
  quantize_dequantize(named.spec, shape.rows, shape.cols, x.data(), got.data(), range, &got_counts);
  quantize_dequantize_ref(named.spec, shape.rows, shape.cols, x.data(), want.data(), range, &want_counts);
  expect_same(named, kind.name, shape, got, want);
  ASSERT_EQ(got_counts, want_counts) << named.name << ", " << kind.name << ", " << shape.rows << "x"
                                     << shape.cols << ": saturated " << got_counts.saturated << " "
                                     << want_counts.saturated << ", nonfinite " << got_counts.nonfinite << " "
                                     << want_counts.nonfinite << ", zero groups " << got_counts.zero_groups
                                     << " " << want_counts.zero_groups << ", underflow "
                                     << got_counts.underflow_blocks << " " << want_counts.underflow_blocks;

  std::vector<float> in_place = x;
  quantize_dequantize(named.spec, shape.rows, shape.cols, in_place.data(), in_place.data(), range, nullptr);
  expect_same(named, "in place", shape, in_place, want);
}

// One test a format, over all of its granularities and options.
class FastEqualsReference : public ::testing::TestWithParam<Format> {
 protected:
  static std::vector<NamedSpec> specs() {
    std::vector<NamedSpec> of_format;
    for (const NamedSpec& named : all_specs()) {
      if (named.spec.format->id == GetParam().id) of_format.push_back(named);
    }
    return of_format;
  }
};

TEST_P(FastEqualsReference, OnFiniteValues) {
  for (const NamedSpec& named : specs()) {
    for (const NamedSample& kind : kFiniteSamples) {
      for (const Shape& shape : kShapes) expect_fast_is_reference(named, kind, shape, nullptr);
    }
  }
}

TEST_P(FastEqualsReference, OnNonFiniteValues) {
  for (const NamedSpec& named : specs()) {
    for (const NamedSample& kind : kSpecialSamples) {
      for (const Shape& shape : kShapes) expect_fast_is_reference(named, kind, shape, nullptr);
    }
  }
}

// A tensor scale from elsewhere: values saturate, and NaN and Inf meet a scale that knows nothing of them.
// Specs without a tensor scale must not look at the range.
TEST_P(FastEqualsReference, UnderAForeignTensorRange) {
  for (const NamedSpec& named : specs()) {
    for (const TensorRange& range :
         {TensorRange{-0.5F, 1.5F, 1.5F}, TensorRange{-1e-5F, 0, 1e-5F}, TensorRange{},
          TensorRange{-1e30F, 3e38F, 3e38F}, TensorRange{-1, 1, 1, 2}}) {
      for (const Shape& shape : {Shape{5, 33}, Shape{3, 257}}) {
        for (const NamedSample& kind : kFiniteSamples) expect_fast_is_reference(named, kind, shape, &range);
        for (const NamedSample& kind : kSpecialSamples) expect_fast_is_reference(named, kind, shape, &range);
      }
    }
  }
}

TEST_P(FastEqualsReference, OnNoValues) {
  for (const NamedSpec& named : specs()) {
    QuantCounts counts;
    quantize_dequantize(named.spec, 0, 64, nullptr, nullptr, nullptr, &counts);
    EXPECT_EQ(counts, QuantCounts{}) << named.name;
  }
}

INSTANTIATE_TEST_SUITE_P(, FastEqualsReference, ::testing::ValuesIn(formats().begin(), formats().end()),
                         [](const auto& param) { return std::string(param.param.id); });

}  // namespace
}  // namespace quantmap
