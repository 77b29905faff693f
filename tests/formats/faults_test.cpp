// Faults that other tools have had (faults.md), each with its small input and the right answer.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "formats/encoded.hpp"
#include "samples.hpp"
#include "vectors.hpp"

namespace quantmap {
namespace {

using namespace testing;

std::vector<float> rounded(const QuantSpec& spec, std::int64_t rows, std::int64_t cols,
                           const std::vector<float>& x, QuantCounts* counts = nullptr) {
  std::vector<float> y(x.size());
  quantize_dequantize(spec, rows, cols, x.data(), y.data(), nullptr, counts);
  return y;
}

// B05: both rules are legal; `floor` leaves the block's maximum beyond the element's range.
TEST(Faults, MxRuleDecidesWhetherTheMaximumSaturates) {
  std::vector<float> x(32, 1.0F);
  x[7] = 500;
  QuantSpec spec = spec_of("mxfp8_e4m3");
  QuantCounts counts;
  EXPECT_EQ(rounded(spec, 1, 32, x, &counts)[7], 448.0F);
  EXPECT_EQ(counts.saturated, 1);
  spec.rule = MxScaleRule::rceil;
  counts = {};
  EXPECT_EQ(rounded(spec, 1, 32, x, &counts)[7], 512.0F);
  EXPECT_EQ(counts.saturated, 0);
}

// S07: the exponent comes from the FP32 amax; rounded to BF16 first, 7.99 would be 8.
TEST(Faults, MxExponentIsTakenFromFp32) {
  std::vector<float> x(32, 0.0F);
  x[0] = 7.99F;
  EXPECT_EQ(encode(spec_of("mxfp4"), 1, 32, x.data()).block_scales[0], 127);  // 2^(2-2), not 2^(3-2)
}

// B07: rows, groups and whole matrices of zeros come back as zeros, and are counted.
TEST(Faults, ZerosComeBackExactly) {
  for (const NamedSpec& named : all_specs()) {
    for (const bool whole : {false, true}) {
      std::vector<float> x(4 * 64, 0.5F);
      std::fill(x.begin() + 64, x.begin() + (whole ? 256 : 128), 0.0F);
      if (whole) std::fill(x.begin(), x.end(), 0.0F);
      QuantCounts counts;
      const std::vector<float> y = rounded(named.spec, 4, 64, x, &counts);
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i] == 0) {
          ASSERT_EQ(y[i], 0.0F) << named.name << " at " << i;
        }
        ASSERT_TRUE(std::isfinite(y[i])) << named.name << " at " << i;
      }
      EXPECT_EQ(counts.nonfinite, 0) << named.name;
      const bool has_scale = named.spec.format->kind != FormatKind::cast &&
                             named.spec.source != ScaleSource::unit &&
                             named.spec.format->id != "q1_0";  // blocks of 128: rows of 64 are kept in F16
      if (whole && has_scale) {
        EXPECT_GT(counts.zero_groups, 0) << named.name;
      }
    }
  }
}

// B09: the range of one-sided data is widened to contain zero.
TEST(Faults, AsymmetricRangeContainsZero) {
  QuantSpec spec = spec_of("int4", Granularity::group, 4);
  spec.asymmetric = true;
  const std::vector<float> x = {-12, -11, -10, -9};
  const Encoded encoded = encode(spec, 1, 4, x.data());
  EXPECT_EQ(encoded.scales[0], 0.8F);
  EXPECT_EQ(encoded.zero_points[0], 15);
  const std::vector<float> y = rounded(spec, 1, 4, x);
  const float want[] = {-12, -11.2F, -9.6F, -8.8F};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::abs(y[i] - want[i]) <= 1e-6F) << y[i];
}

// S11: a symmetric zero is code 0, in both ranges.
TEST(Faults, SymmetricZeroIsCodeZero) {
  for (const IntegerRange range : {IntegerRange::full, IntegerRange::narrow}) {
    QuantSpec spec = spec_of("int8", Granularity::row);
    spec.range = range;
    const std::vector<float> x = {-1, 0, 1};
    EXPECT_EQ(encode(spec, 1, 3, x.data()).codes[1], 0);
    EXPECT_EQ(rounded(spec, 1, 3, x)[1], 0.0F);
  }
}

// B23: blocks do not run across row ends; two rows of 40 are 32+8 each.
TEST(Faults, BlocksEndWithTheRow) {
  std::vector<float> x(80, 0.01F);
  for (std::size_t i = 40; i < 80; ++i) x[i] = 100;  // would drown row 0's tail if they shared a scale
  for (const char* id : {"mxfp4", "mxfp8_e4m3", "nvfp4", "int4"}) {
    const bool integer = find_format(id)->kind == FormatKind::integer;
    QuantSpec spec = integer ? spec_of(id, Granularity::group, 32) : spec_of(id);
    spec.no_global = true;
    const Encoded encoded = encode(spec, 2, 40, x.data());
    const std::size_t scales = integer ? encoded.scales.size() : encoded.block_scales.size();
    EXPECT_EQ(scales, id == std::string("nvfp4") ? 6U : 4U) << id;
    EXPECT_GT(rounded(spec, 2, 40, x)[39], 0.0F) << id;
  }
}

// B23: quantizing again changes nothing, for `narrow` integers and MX (`full` integers move).
TEST(Faults, QuantizingTwiceIsQuantizingOnce) {
  std::vector<NamedSpec> specs;
  for (const NamedSpec& named : all_specs()) {
    const QuantSpec& spec = named.spec;
    const bool narrow = spec.format->kind == FormatKind::integer && spec.range == IntegerRange::narrow &&
                        !spec.asymmetric && !spec.per_head && spec.scale == ScaleType::f32;
    if (narrow || spec.format->kind == FormatKind::cast ||
        (spec.format->kind == FormatKind::mx && spec.rule == MxScaleRule::floor)) {
      specs.push_back(named);
    }
  }
  ASSERT_GT(specs.size(), 10U);
  for (const NamedSpec& named : specs) {
    for (const Shape& shape : kShapes) {
      const std::vector<float> x = sample(kFiniteSamples[0], shape);
      const std::vector<float> once = rounded(named.spec, shape.rows, shape.cols, x);
      const std::vector<float> twice = rounded(named.spec, shape.rows, shape.cols, once);
      const bool integer = named.spec.format->kind == FormatKind::integer;
      const Encoded a = encode(named.spec, shape.rows, shape.cols, x.data());
      const Encoded b = encode(named.spec, shape.rows, shape.cols, once.data());
      ASSERT_EQ(a.codes, b.codes) << named.name;
      for (std::size_t i = 0; i < once.size(); ++i) {
        // fl(fl(Q s) / Q) may be the neighbour of s: the codes stay, the last bit of the values may not.
        const float bound = integer ? std::abs(once[i]) * 0x1p-22F : 0.0F;
        ASSERT_TRUE(std::abs(twice[i] - once[i]) <= bound) << named.name << " " << once[i] << " " << twice[i];
      }
    }
  }
}

// S15: what lies beyond a short last NF4 block has no part in its absmax.
TEST(Faults, ShortNf4BlockSeesOnlyItsOwnValues) {
  std::vector<float> x(100, 0.25F);
  x.resize(128, 1000.0F);  // beyond the 100 values given
  const std::vector<float> y = rounded(spec_of("nf4"), 1, 100, {x.begin(), x.begin() + 100});
  EXPECT_EQ(encode(spec_of("nf4"), 1, 100, x.data()).scales[1], 0.25F);
  std::vector<float> fast(100);
  quantize_dequantize(spec_of("nf4"), 1, 100, x.data(), fast.data(), nullptr, nullptr);
  EXPECT_EQ(fast[99], 0.25F);
  EXPECT_EQ(y, fast);
}

// Section 0: NaN and Inf are counted, and never come back as numbers where their scale is their own.
TEST(Faults, NonFiniteValuesAreCountedAndPoisonTheirBlock) {
  for (const NamedSpec& named : all_specs()) {
    if (named.spec.format->id == "q1_0") continue;  // blocks of 128: rows of 64 are kept in F16
    for (const float bad :
         {NAN, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
      std::vector<float> x = sample(kFiniteSamples[0], {4, 64});
      x[70] = bad;
      QuantCounts counts;
      const std::vector<float> y = rounded(named.spec, 4, 64, x, &counts);
      EXPECT_EQ(counts.nonfinite, 1) << named.name;
      const bool own_scale =
          named.spec.format->kind != FormatKind::cast && named.spec.source != ScaleSource::unit;
      if (own_scale || std::isnan(bad)) {
        EXPECT_TRUE(std::isnan(y[70])) << named.name;
      } else if (named.spec.format->kind == FormatKind::cast) {
        EXPECT_EQ(y[70], bad) << named.name;
      } else {
        EXPECT_EQ(y[70], std::copysign(named.spec.format->max, bad)) << named.name;
      }
      if (named.spec.granularity == Granularity::row || named.spec.format->kind == FormatKind::mx) {
        EXPECT_TRUE(std::isfinite(y[0]) && std::isfinite(y[130]))
            << named.name << ": other rows are untouched";
      }
    }
  }
}

}  // namespace
}  // namespace quantmap
