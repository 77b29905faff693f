// The operand form: what a product multiplies, and the scale outside its sum.
#include <gtest/gtest.h>

#include "formats/bf16.hpp"
#include "formats/encoded.hpp"
#include "samples.hpp"
#include "vectors.hpp"

namespace quantmap {
namespace {

using namespace testing;

struct Operand {
  OperandForm form;
  std::vector<std::uint16_t> bits;
  std::vector<float> outer;
  std::int64_t outside = 0;
  QuantCounts counts;

  Operand(const QuantSpec& spec, const Shape& shape, const std::vector<float>& x)
      : form(operand_form(spec)), bits(x.size()) {
    outer.assign(static_cast<std::size_t>(outer_scale_count(form, shape.rows, shape.cols)), NAN);
    outside = quantize_operand_bf16(spec, shape.rows, shape.cols, x.data(), bits.data(), outer.data(),
                                    nullptr, &counts);
  }
  float outer_of(std::int64_t row, std::int64_t col, std::int64_t cols) const {
    const auto groups = form.group > 0 ? (cols + form.group - 1) / form.group : 0;
    switch (form.outer) {
      case OuterScale::none:
        return 1;
      case OuterScale::tensor:
        return outer[0];
      case OuterScale::row:
        return outer[static_cast<std::size_t>(row)];
      case OuterScale::row_group:
        return outer[static_cast<std::size_t>(row * groups + col / form.group)];
      case OuterScale::tile:
        return outer[static_cast<std::size_t>(row / form.tile_rows * groups + col / form.group)];
    }
    return NAN;
  }
};

// value = operand * outer scale: to the bit where the decoded value is that product, within the rounding of
// one more FP32 product for NVFP4 (whose decoding multiplies its two scales first), once rounded to BF16
// where the operand is the decoded value itself.
TEST(OperandForm, TimesOuterScaleIsTheDecodedValue) {
  for (const NamedSpec& named : all_specs()) {
    for (const Shape& shape : kShapes) {
      for (const NamedSample& kind :
           {kFiniteSamples[0], kFiniteSamples[1], kFiniteSamples[3], kFiniteSamples[6]}) {
        const std::vector<float> x = sample(kind, shape);
        const Operand operand(named.spec, shape, x);
        std::vector<float> decoded(x.size());
        QuantCounts counts;
        quantize_dequantize(named.spec, shape.rows, shape.cols, x.data(), decoded.data(), nullptr, &counts);
        ASSERT_EQ(operand.counts, counts) << named.name;
        const bool nvfp4 = named.spec.format->kind == FormatKind::nvfp4;
        for (std::size_t i = 0; i < x.size(); ++i) {
          const auto row = static_cast<std::int64_t>(i) / shape.cols;
          const auto col = static_cast<std::int64_t>(i) % shape.cols;
          const float got = float_from_bf16(operand.bits[i]) * operand.outer_of(row, col, shape.cols);
          if (nvfp4) {
            ASSERT_TRUE(std::abs(got - decoded[i]) <= std::abs(decoded[i]) * 0x1p-22F)
                << named.name << " " << i;
          } else if (operand.form.exact_in_bf16) {
            ASSERT_TRUE(same(got, decoded[i]))
                << named.name << ", " << kind.name << " at " << i << ": " << got << " " << decoded[i];
          } else {
            ASSERT_TRUE(same(got, round_to_bf16(decoded[i])))
                << named.name << ", " << kind.name << " at " << i;
          }
        }
      }
    }
  }
}

TEST(OperandForm, KeepsTheScaleOutsideWhereItIsConstantAlongTheSum) {
  const struct {
    QuantSpec spec;
    OuterScale outer;
    bool exact;
  } cases[] = {
      {spec_of("bf16"), OuterScale::none, true},
      {spec_of("fp16"), OuterScale::none, false},
      {spec_of("int8", Granularity::tensor), OuterScale::tensor, true},
      {spec_of("int8", Granularity::row), OuterScale::row, true},
      {spec_of("int4", Granularity::group, 32), OuterScale::none, false},
      {spec_of("int8", Granularity::column), OuterScale::none, false},
      {spec_of("fp8_e4m3", Granularity::group, 128), OuterScale::row_group, true},
      {spec_of("fp8_e5m2", Granularity::column), OuterScale::none, false},
      {spec_of("mxfp4"), OuterScale::none, true},
      {spec_of("nvfp4"), OuterScale::tensor, true},
      {spec_of("nf4"), OuterScale::none, false},
  };
  for (const auto& c : cases) {
    const OperandForm form = operand_form(c.spec);
    EXPECT_EQ(form.outer, c.outer) << spelling(c.spec, Role::weight);
    EXPECT_EQ(form.exact_in_bf16, c.exact) << spelling(c.spec, Role::weight);
  }
  QuantSpec tile = spec_of("fp8_e4m3", Granularity::tile);
  tile.tile_rows = 4;
  tile.tile_cols = 12;
  const OperandForm form = operand_form(tile);
  EXPECT_EQ(form.outer, OuterScale::tile);
  EXPECT_EQ(form.tile_rows, 4);
  EXPECT_EQ(form.group, 12);
  EXPECT_EQ(outer_scale_count(form, 9, 25), 3 * 3);
}

// oneDNN flushes BF16 subnormals: such operands are counted, so that the caller multiplies in FP32.
TEST(OperandForm, CountsOperandsOutsideBf16sNormalRange) {
  std::vector<float> x(64, 0.0F);
  x[3] = 0x1p-130F;
  x[40] = 1;
  EXPECT_EQ(Operand(spec_of("bf16"), {1, 64}, x).outside, 1);
  EXPECT_EQ(Operand(spec_of("mxfp8_e4m3"), {1, 64}, x).outside, 1) << "2^-3 * 2^-127";
  EXPECT_EQ(Operand(spec_of("int8", Granularity::row), {1, 64}, x).outside, 0) << "codes are whole numbers";
  x[3] = NAN;
  EXPECT_GT(Operand(spec_of("int8", Granularity::row), {1, 64}, x).outside, 0) << "NaN";
}

}  // namespace
}  // namespace quantmap
