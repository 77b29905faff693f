// The registry, spellings and storage.
#include "formats/spec.hpp"

#include <gtest/gtest.h>

#include <set>

#include "samples.hpp"

namespace quantmap {
namespace {

using namespace testing;

TEST(Registry, RowsAreFoundByTheirId) {
  std::set<std::string_view> ids;
  for (const Format& format : formats()) {
    EXPECT_EQ(find_format(format.id), &format);
    EXPECT_TRUE(ids.insert(format.id).second) << format.id;
    EXPECT_FALSE(format.scale.empty() || format.reference.empty()) << format.id;
  }
  EXPECT_EQ(find_format("int9"), nullptr);
  EXPECT_EQ(find_format("INT8"), nullptr) << "ids are lower case";
  for (const char* id : {"bf16",     "fp16",       "int8",       "int6",       "int5",       "int4",
                         "int3",     "int2",       "fp8_e4m3",   "fp8_e5m2",   "fp6_e2m3",   "fp6_e3m2",
                         "fp4_e2m1", "mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4",
                         "mxint8",   "nvfp4",      "nf4",        "bnb_fp4"}) {
    EXPECT_TRUE(ids.contains(id)) << id;
  }
}

TEST(Spec, TwoAreEqualIffEveryFieldIs) {
  const std::vector<NamedSpec> specs = all_specs();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (std::size_t j = 0; j < specs.size(); ++j) EXPECT_EQ(specs[i].spec == specs[j].spec, i == j);
  }
}

TEST(Spec, SpellingNamesEveryChoice) {
  QuantSpec int4 = spec_of("int4", Granularity::group, 128);
  int4.scale = ScaleType::bf16;
  QuantSpec asymmetric = int4;
  asymmetric.asymmetric = true;
  QuantSpec narrow = spec_of("int8", Granularity::row);
  narrow.range = IntegerRange::narrow;
  QuantSpec tensor = narrow;
  tensor.granularity = Granularity::tensor;
  tensor.source = ScaleSource::dynamic;
  QuantSpec tile = spec_of("fp8_e4m3", Granularity::tile);
  tile.tile_rows = 128;
  tile.tile_cols = 64;
  QuantSpec unit = spec_of("fp8_e4m3", Granularity::tensor);
  unit.source = ScaleSource::unit;
  QuantSpec dynamic = unit;
  dynamic.source = ScaleSource::dynamic;
  QuantSpec half_scale = spec_of("fp8_e5m2", Granularity::row);
  half_scale.scale = ScaleType::f16;
  QuantSpec rceil = spec_of("mxfp8_e4m3");
  rceil.rule = MxScaleRule::rceil;
  QuantSpec both = spec_of("nvfp4");
  both.no_global = both.four_over_six = true;
  QuantSpec nested = spec_of("nf4");
  nested.nested = true;
  QuantSpec column = narrow;
  column.granularity = Granularity::column;
  const struct {
    QuantSpec spec;
    Role role;
    const char* text;
  } cases[] = {
      {spec_of("bf16"), Role::weight, "bf16"},
      {spec_of("fp16"), Role::kv, "fp16"},
      {int4, Role::weight, "int4:g128:full:sbf16"},
      {asymmetric, Role::weight, "int4:g128:asym:sbf16"},
      {narrow, Role::weight, "int8:channel:narrow:sf32"},
      {narrow, Role::activation, "int8:token:narrow:sf32"},
      {narrow, Role::kv, "int8:token:narrow:sf32"},
      {tensor, Role::activation, "int8:tensor:narrow:sf32:dynamic"},
      {column, Role::kv, "int8:channel:narrow:sf32"},
      {tile, Role::weight, "fp8_e4m3:b128x64"},
      {unit, Role::kv, "fp8_e4m3:tensor"},
      {dynamic, Role::kv, "fp8_e4m3:tensor:dynamic"},
      {half_scale, Role::weight, "fp8_e5m2:channel:sf16"},
      {spec_of("mxfp4"), Role::activation, "mxfp4:floor"},
      {rceil, Role::weight, "mxfp8_e4m3:rceil"},
      {spec_of("nvfp4"), Role::weight, "nvfp4"},
      {both, Role::weight, "nvfp4:noglobal:4over6"},
      {spec_of("nf4"), Role::weight, "nf4"},
      {nested, Role::weight, "nf4:nested"},
  };
  for (const auto& c : cases) EXPECT_EQ(spelling(c.spec, c.role), c.text);
}

TEST(Spec, KnowsWhatSpansTheTensor) {
  EXPECT_TRUE(spec_of("int8", Granularity::tensor).needs_tensor_range());
  EXPECT_FALSE(spec_of("int8", Granularity::row).needs_tensor_range());
  EXPECT_TRUE(spec_of("nvfp4").needs_tensor_range());
  QuantSpec no_global = spec_of("nvfp4");
  no_global.no_global = true;
  EXPECT_FALSE(no_global.needs_tensor_range());
  QuantSpec unit = spec_of("fp8_e4m3", Granularity::tensor);
  unit.source = ScaleSource::unit;
  EXPECT_FALSE(unit.needs_tensor_range());
  EXPECT_TRUE(spec_of("bf16").is_reference());
  EXPECT_FALSE(spec_of("fp16").is_reference());
}

TEST(Storage, CountsScalesZeroPointsAndPadding) {
  QuantSpec int4 = spec_of("int4", Granularity::group, 128);
  int4.scale = ScaleType::bf16;
  QuantSpec asymmetric = int4;
  asymmetric.asymmetric = true;
  QuantSpec tile = spec_of("fp8_e4m3", Granularity::tile);
  tile.tile_rows = tile.tile_cols = 128;
  QuantSpec unit = spec_of("fp8_e4m3", Granularity::tensor);
  unit.source = ScaleSource::unit;
  QuantSpec nested = spec_of("nf4");
  nested.nested = true;
  QuantSpec no_global = spec_of("nvfp4");
  no_global.no_global = true;
  const struct {
    QuantSpec spec;
    std::int64_t rows, cols, bits;
    const char* reason;
  } cases[] = {
      {spec_of("bf16"), 3, 5, 15 * 16, "no scale"},
      {int4, 2, 256, 512 * 4 + 4 * 16, "4.125 bits a weight"},
      {int4, 2, 200, 400 * 4 + 4 * 16, "the last group is short, not padded"},
      {asymmetric, 2, 256, 512 * 4 + 4 * (16 + 4), "a zero point of 4 bits beside each scale"},
      {spec_of("int8", Granularity::row), 3, 10, 30 * 8 + 3 * 32, "a scale a row"},
      {spec_of("int8", Granularity::column), 3, 10, 30 * 8 + 10 * 32, "a scale a column"},
      {spec_of("fp8_e4m3", Granularity::tensor), 3, 10, 30 * 8 + 32, "one FP32 scale"},
      {unit, 3, 10, 30 * 8, "1.0 is not stored"},
      {tile, 130, 257, 130 * 257 * 8 + 2 * 3 * 32, "ragged tiles have a scale each"},
      {spec_of("mxfp4"), 2, 64, 128 * 4 + 4 * 8, "4.25 bits"},
      {spec_of("mxfp6_e2m3"), 2, 64, 128 * 6 + 4 * 8, "6.25 bits"},
      {spec_of("mxint8"), 2, 64, 128 * 8 + 4 * 8, "8.25 bits"},
      {spec_of("int3", Granularity::row), 3, 10, 30 * 3 + 3 * 32, "codes are dense"},
      {spec_of("bnb_fp4"), 2, 64, 128 * 4 + 2 * 32, "4.5 bits"},
      {spec_of("mxfp8_e4m3"), 2, 40, 128 * 8 + 4 * 8, "two blocks a row, filled up"},
      {no_global, 2, 40, 96 * 4 + 6 * 8, "three blocks of 16 a row, filled up"},
      {spec_of("nvfp4"), 2, 64, 128 * 4 + 8 * 8 + 32, "4.5 bits and the tensor scale"},
      {spec_of("nf4"), 2, 64, 128 * 4 + 2 * 32, "4.5 bits"},
      {spec_of("nf4"), 3, 40, 120 * 4 + 2 * 32, "blocks run over row ends"},
      {nested, 256, 128, 32768 * 4 + 512 * 8 + 2 * 32 + 32,
       "8-bit maxima, two FP32 maxima of those, the mean"},
  };
  for (const auto& c : cases) EXPECT_EQ(storage_bits(c.spec, c.rows, c.cols), c.bits) << c.reason;
  // formats.md, section 5: 4 + 8/64 + 32/(64*256) = 4.127 bits.
  const double per_value = static_cast<double>(storage_bits(nested, 4096, 4096)) / (4096.0 * 4096.0);
  EXPECT_TRUE(std::abs(per_value - 4.127) <= 5e-4) << per_value;
}

}  // namespace
}  // namespace quantmap
