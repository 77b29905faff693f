// Laws of quantizers (formats.md, section 13).
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "formats/encoded.hpp"
#include "formats/run_scale.hpp"
#include "samples.hpp"
#include "vectors.hpp"

namespace quantmap {
namespace {

using namespace testing;

std::vector<float> rounded(const QuantSpec& spec, const Shape& shape, const std::vector<float>& x,
                           const TensorRange* range = nullptr, QuantCounts* counts = nullptr) {
  std::vector<float> y(x.size());
  quantize_dequantize(spec, shape.rows, shape.cols, x.data(), y.data(), range, counts);
  return y;
}

// Any piece that piece_rows() allows, with the range and counts of the pieces merged.
TEST(Pieces, GiveTheResultOfTheWhole) {
  for (const NamedSpec& named : all_specs()) {
    for (const Shape& shape : {Shape{13, 33}, Shape{9, 48}, Shape{40, 10}, Shape{16, 64}}) {
      for (const NamedSample& kind : {kFiniteSamples[0], kFiniteSamples[6], kSpecialSamples[1]}) {
        const std::vector<float> x = sample(kind, shape);
        const std::int64_t step = piece_rows(named.spec, shape.rows, shape.cols);
        ASSERT_GT(step, 0);
        TensorRange range;
        for (std::int64_t row = 0; row < shape.rows; ++row) {
          range.merge(measure_range({x.data() + row * shape.cols, static_cast<std::size_t>(shape.cols)}));
        }
        QuantCounts whole_counts;
        const std::vector<float> whole = rounded(named.spec, shape, x, nullptr, &whole_counts);
        std::vector<float> pieces(x.size());
        QuantCounts counts;
        for (std::int64_t row = 0; row < shape.rows; row += step) {
          const std::int64_t rows = std::min(step, shape.rows - row);
          QuantCounts part;
          quantize_dequantize(named.spec, rows, shape.cols, x.data() + row * shape.cols,
                              pieces.data() + row * shape.cols, &range, &part);
          counts.merge(part);
        }
        for (std::size_t i = 0; i < x.size(); ++i) {
          ASSERT_TRUE(same(pieces[i], whole[i])) << named.name << ", " << kind.name << " at " << i;
        }
        if (named.spec.granularity != Granularity::tensor) {  // a tensor's zero group is counted once a piece
          ASSERT_EQ(counts, whole_counts) << named.name << ", " << kind.name;
        }
      }
    }
  }
}

TEST(Pieces, OfRangesMergeToTheWhole) {
  const std::vector<float> x = sample(kSpecialSamples[1], {1, 500});
  const TensorRange whole = measure_range(x);
  for (const std::size_t cut : {0UL, 1UL, 9UL, 10UL, 250UL, 500UL}) {
    TensorRange merged = measure_range({x.data(), cut});
    merged.merge(measure_range({x.data() + cut, x.size() - cut}));
    EXPECT_EQ(merged.min, whole.min);
    EXPECT_EQ(merged.max, whole.max);
    EXPECT_EQ(merged.amax, whole.amax);
    EXPECT_EQ(merged.nonfinite, whole.nonfinite);
  }
  float least = 0;
  float most = 0;
  std::int64_t nonfinite = 0;
  for (const float value : x) {
    if (!std::isfinite(value)) {
      ++nonfinite;
      continue;
    }
    least = std::min(least, value);
    most = std::max(most, value);
  }
  EXPECT_EQ(whole.min, least);
  EXPECT_EQ(whole.max, most);
  EXPECT_EQ(whole.amax, std::max(most, -least));
  EXPECT_EQ(whole.nonfinite, nonfinite);
  EXPECT_GT(nonfinite, 0);
  EXPECT_EQ(measure_range({}).amax, 0);
}

// The largest step of the grid that a value was rounded on: scale for integers, 2^-m of the value for floats.
TEST(Properties, ErrorIsAtMostHalfAStepUnlessClamped) {
  for (const NamedSpec& named : all_specs()) {
    const QuantSpec& spec = named.spec;
    if (spec.format->kind != FormatKind::integer || spec.granularity != Granularity::row) continue;
    const Shape shape{7, 130};
    for (const NamedSample& kind :
         {kFiniteSamples[0], kFiniteSamples[2], kFiniteSamples[4], kFiniteSamples[6]}) {
      const std::vector<float> x = sample(kind, shape);
      const Encoded encoded = encode(spec, shape.rows, shape.cols, x.data());
      const std::vector<float> y = rounded(spec, shape, x);
      std::int64_t clamped = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double scale = encoded.scales[i / static_cast<std::size_t>(shape.cols)];
        const double error = std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
        // Two roundings more: of the quotient and of the product, relative 2^-24 each.
        if (!(error <= scale / 2 + std::abs(static_cast<double>(x[i])) * 0x1p-22)) ++clamped;
      }
      ASSERT_LE(clamped, encoded.counts.saturated + (spec.asymmetric ? shape.rows : 0))
          << named.name << kind.name;
    }
  }
}

// Scaling by a power of two moves MX scales and leaves codes.
TEST(Properties, PowersOfTwoMoveMxScalesAndLeaveCodes) {
  for (const NamedSpec& named : all_specs()) {
    const QuantSpec& spec = named.spec;
    if (spec.format->kind == FormatKind::mx) {
      const Shape shape{4, 70};
      std::vector<float> x = sample(kFiniteSamples[0], shape);
      const Encoded before = encode(spec, shape.rows, shape.cols, x.data());
      for (float& value : x) value = std::ldexp(value, -11);
      const Encoded after = encode(spec, shape.rows, shape.cols, x.data());
      EXPECT_EQ(before.codes, after.codes) << named.name;
      for (std::size_t i = 0; i < before.block_scales.size(); ++i) {
        ASSERT_EQ(before.block_scales[i] - 11, after.block_scales[i]) << named.name;
      }
    }
  }
}

TEST(Properties, PermutingRowsPermutesResults) {
  for (const NamedSpec& named : all_specs()) {
    const QuantSpec& spec = named.spec;
    if (spec.granularity == Granularity::tile || spec.nested) continue;  // shares scales between rows
    const Shape shape{6, 64};
    const std::vector<float> x = sample(kFiniteSamples[6], shape);
    std::vector<float> reversed(x.size());
    for (std::size_t row = 0; row < 6; ++row) std::copy_n(&x[row * 64], 64, &reversed[(5 - row) * 64]);
    const std::vector<float> y = rounded(spec, shape, x);
    const std::vector<float> z = rounded(spec, shape, reversed);
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_TRUE(same(y[i], z[(5 - i / 64) * 64 + i % 64])) << named.name << " at " << i;
    }
  }
}

// Columns of zeros at the end change no other value.
TEST(Properties, ZeroPaddingChangesNoOtherValue) {
  for (const NamedSpec& named : all_specs()) {
    if (named.spec.format->kind == FormatKind::lookup) continue;  // blocks run over row ends: see Pieces
    if (named.spec.format->kind == FormatKind::ggml) continue;    // the length of a row chooses the type
    const Shape shape{5, 41};
    const Shape padded{5, 96};
    const std::vector<float> x = sample(kFiniteSamples[0], shape);
    std::vector<float> wide(5 * 96, 0.0F);
    for (std::size_t row = 0; row < 5; ++row) std::copy_n(&x[row * 41], 41, &wide[row * 96]);
    const std::vector<float> y = rounded(named.spec, shape, x);
    const std::vector<float> z = rounded(named.spec, padded, wide);
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_TRUE(same(y[i], z[i / 41 * 96 + i % 41])) << named.name << " at " << i;
    }
  }
}

// A scale kept in 16 bits is rounded before it quantizes: the codes are those of the rounded scale.
TEST(Properties, TheStoredScaleQuantizes) {
  for (const ScaleType type : {ScaleType::f16, ScaleType::bf16}) {
    QuantSpec spec = spec_of("int4", Granularity::group, 32);
    spec.scale = type;
    const Shape shape{3, 96};
    const std::vector<float> x = sample(kFiniteSamples[1], shape);
    const Encoded encoded = encode(spec, shape.rows, shape.cols, x.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float scale = encoded.scales[i / 32];
      EXPECT_EQ(stored_scale(type, scale), scale);
      ASSERT_EQ(encoded.codes[i], static_cast<int>(std::clamp(std::nearbyint(x[i] / scale), -8.0F, 7.0F)));
    }
  }
}

// vLLM's rule: a scale of at least 1e-6, and a product with fl(1/s) instead of a quotient.
TEST(Properties, PerHeadRuleMultipliesByTheInverse) {
  QuantSpec spec = spec_of("int8", Granularity::row);
  spec.range = IntegerRange::narrow;
  spec.per_head = true;
  const std::vector<float> x = {1e-9F, -1e-9F};
  const Encoded encoded = encode(spec, 1, 2, x.data());
  EXPECT_EQ(encoded.scales[0], 1e-6F);
  EXPECT_EQ(encoded.codes, (std::vector<std::int32_t>{0, 0}));
  // fl(x * fl(1/s)) and fl(x / s) differ in their last bits, and so in the code where x is at a tie.
  QuantSpec divide = spec;
  divide.per_head = false;
  SplitMix64 random(3);
  int differ = 0;
  for (int i = 0; i < 10000; ++i) {
    const auto amax = static_cast<float>(1 + random.uniform());
    const float scale = amax / 127;
    const std::vector<float> pair = {amax, (static_cast<float>(random.next() % 126) + 0.5F) * scale};
    const Encoded multiplied = encode(spec, 1, 2, pair.data());
    ASSERT_EQ(multiplied.codes[1], static_cast<int>(std::nearbyint(pair[1] * (1 / scale))));
    differ += multiplied.codes != encode(divide, 1, 2, pair.data()).codes ? 1 : 0;
  }
  EXPECT_GT(differ, 0);
}

}  // namespace
}  // namespace quantmap
