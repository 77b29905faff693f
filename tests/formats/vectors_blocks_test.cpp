// Golden vectors of formats with blocks of their own: MX, NVFP4, NF4, GGUF.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/bnb_fp4.hpp"
#include "formats/dynamic_map.hpp"
#include "formats/encoded.hpp"
#include "formats/ggml_blocks.hpp"
#include "formats/nf4.hpp"
#include "samples.hpp"
#include "vectors.hpp"

namespace quantmap {
namespace {

using namespace testing;
using nlohmann::json;

TEST(Vectors, mx) {
  QUANTMAP_NEEDS(vectors_dir() / "mx.json");
  const json file = vector_file("mx");
  Checked checked;
  for (const json& c : file["cases"]) {
    const std::string element = c["elem"];
    const std::string mode = c["mode"];
    QuantSpec spec = spec_of(element == "e4m3fn" ? "mxfp8_e4m3"
                             : element == "e5m2" ? "mxfp8_e5m2"
                             : element == "e2m3" ? "mxfp6_e2m3"
                             : element == "e3m2" ? "mxfp6_e3m2"
                                                 : "mxfp4");
    spec.rule = mode == "floor"   ? MxScaleRule::floor
                : mode == "ceil"  ? MxScaleRule::ceil
                : mode == "rceil" ? MxScaleRule::rceil
                                  : MxScaleRule::even;
    const std::vector<std::uint32_t> scales = words(c["scales"], 2);
    for (std::size_t block = 0; block < file["x"].size(); ++block) {
      const std::string name = fmt::format("{} {} block {}", element, mode, block);
      const std::vector<float> x = floats(file["x"][block]);
      const Encoded encoded = encode(spec, 1, 32, x.data());
      expect_all_equal(encoded.block_scales, std::vector{scales[block]}, name + " scale", checked);
      if (c["codes"][block].is_null()) continue;  // NaN scale: codes unspecified
      expect_all_equal(encoded.codes, words(c["codes"][block], 2), name + " codes", checked);
      std::vector<float> reference(32);
      std::vector<float> fast(32);
      decode(encoded, reference.data());
      quantize_dequantize(spec, 1, 32, x.data(), fast.data(), nullptr, nullptr);
      expect_same_floats(fast, reference, name, checked);
    }
  }
}

TEST(Vectors, mxint8) {
  QUANTMAP_NEEDS(vectors_dir() / "mx.json");
  const json file = vector_file("mx");
  if (!file.contains("mxint8")) GTEST_SKIP() << "no section";
  Checked checked;
  const json& section = file["mxint8"];
  const std::vector<std::uint32_t> scales = words(section["scales"], 2);
  for (std::size_t k = 0; k < section["blocks"].size(); ++k) {
    const std::vector<float> x = floats(file["x"][section["blocks"][k].get<std::size_t>()]);
    const Encoded encoded = encode(spec_of("mxint8"), 1, 32, x.data());
    const std::string name = "block " + std::to_string(k);
    expect_all_equal(encoded.block_scales, std::vector{scales[k]}, name, checked);
    expect_all_equal(encoded.codes, words(section["codes_rne"][k], 2), name, checked);
    // microxcaling's default: ties away from zero.
    std::vector<std::uint32_t> away;
    for (const float value : x) {
      const float units = std::round(std::ldexp(value, 127 + 6 - static_cast<int>(scales[k])));
      away.push_back(static_cast<std::uint32_t>(static_cast<int>(std::clamp(units, -127.0F, 127.0F))) &
                     0xFFU);
    }
    expect_all_equal(away, words(section["codes_half_away"][k], 2), name + " half away", checked);
  }
}

TEST(Vectors, nvfp4) {
  QUANTMAP_NEEDS(vectors_dir() / "nvfp4.json");
  const json file = vector_file("nvfp4");
  Checked checked;
  const std::int64_t rows = file["rows"];
  const std::int64_t cols = file["cols"];
  const std::vector<float> x = floats(joined(file["x"]));
  for (const json& v : file["variants"]) {
    const std::string name = v["variant"];
    if (name != "canonical" && name != "4over6_mse_256") continue;  // other tools' arithmetic
    QuantSpec spec = spec_of("nvfp4");
    spec.four_over_six = name != "canonical";
    const Encoded encoded = encode(spec, rows, cols, x.data());
    if (v.contains("global_scale") && v["global_scale"].is_string()) {
      expect_same_floats({encoded.tensor_scale}, floats(v["global_scale"]), name, checked);
    }
    expect_all_equal(encoded.block_scales, words(joined(v["scales"]), 2), name + " scales", checked);
    expect_all_equal(encoded.codes, words(joined(v["codes"]), 2), name + " codes", checked);
    std::vector<float> reference(x.size());
    std::vector<float> fast(x.size());
    decode(encoded, reference.data());
    quantize_dequantize(spec, rows, cols, x.data(), fast.data(), nullptr, nullptr);
    expect_same_floats(fast, reference, name, checked);
  }
}

TEST(Vectors, nf4) {
  QUANTMAP_NEEDS(vectors_dir() / "nf4.json");
  const json file = vector_file("nf4");
  Checked checked;
  expect_same_floats({Nf4::kLevels.begin(), Nf4::kLevels.end()}, floats(file["levels"]), "levels", checked);
  expect_same_floats({Nf4::kMidpoints.begin(), Nf4::kMidpoints.end()}, floats(file["midpoints"]), "midpoints",
                     checked);
  const auto& map = dynamic_map();
  expect_same_floats({map.begin(), map.end()}, floats(file["dynamic_map"]), "dynamic map", checked);

  const std::vector<float> x = floats(file["x"]);
  const Encoded encoded = encode(spec_of("nf4"), 1, file["n"], x.data());
  expect_same_floats(encoded.scales, floats(file["nf4_absmax"]), "absmax", checked);
  expect_all_equal(encoded.codes, words(file["nf4_codes"], 2), "codes", checked);

  // Two codes a byte, the first in the high nibble, an odd one filled up with code 7 (nf4).
  const auto packed = [](const std::vector<std::int32_t>& codes, std::uint32_t filler) {
    std::vector<std::uint32_t> bytes;
    for (std::size_t i = 0; i < codes.size(); i += 2) {
      const std::uint32_t low = i + 1 < codes.size() ? static_cast<std::uint32_t>(codes[i + 1]) : filler;
      bytes.push_back(static_cast<std::uint32_t>(codes[i]) << 4 | low);
    }
    return bytes;
  };
  expect_all_equal(packed(encoded.codes, 7), words(file["nf4_packed"], 2), "nf4 packed", checked);
  const Encoded fp4 = encode(spec_of("bnb_fp4"), 1, file["n"], x.data());
  expect_all_equal(packed(fp4.codes, 0), words(file["fp4_packed"], 2), "fp4 packed", checked);
  const std::vector<float> fp4_table = floats(file["fp4_table"]);
  for (std::uint32_t code = 0; code < 16; ++code) {
    EXPECT_EQ(BnbFp4::decode(code), fp4_table[code]) << code;
    checked.add();
  }

  const json& nested = file["double_quant"];
  const NestedAbsmax got = nest_absmax(floats(nested["absmax"]));
  const float offset = floats(nested["offset"])[0];
  ASSERT_TRUE(std::abs(got.offset - offset) <= std::ldexp(offset, -23)) << got.offset << " " << offset;
  if (got.offset == offset) {  // else it is 1 ulp away, and all that follows with it
    expect_same_floats(got.nested, floats(nested["nested_absmax"]), "nested absmax", checked);
    expect_all_equal(got.codes, words(nested["codes"], 2), "nested codes", checked);
    expect_same_floats(got.decoded, floats(nested["dequant_absmax"]), "decoded absmax", checked);
  } else {
    ADD_FAILURE() << "the mean is within its tolerance but not equal; the nested codes were not compared";
  }
}

TEST(Vectors, gguf) {
  QUANTMAP_NEEDS(vectors_dir() / "gguf.json");
  const json file = vector_file("gguf");
  Checked checked;
  for (const json& c : file["cases"]) {
    std::string name = c["type"];
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char ch) { return std::toupper(ch); });
    const auto types = ggml_types();
    const auto type =
        std::find_if(types.begin(), types.end(), [&](const GgmlType& t) { return t.name == name; });
    ASSERT_NE(type, types.end()) << name;
    EXPECT_EQ(type->block, c["block"].get<int>()) << name;
    EXPECT_EQ(type->bytes, c["bytes_per_block"].get<int>()) << name;
    if (!type->decoded) continue;
    const std::vector<std::uint32_t> bytes = words(joined(c["bytes"]), 2);
    const std::vector<float> want = floats(joined(c["dequant"]));
    // One byte off, so that nothing is aligned.
    std::vector<std::byte> shifted(bytes.size() + 1);
    std::transform(bytes.begin(), bytes.end(), shifted.begin() + 1,
                   [](std::uint32_t b) { return std::byte(b); });
    std::vector<float> got(want.size());
    decode_ggml(*type, shifted.data() + 1, static_cast<std::int64_t>(got.size()), got.data());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], want[i]) << name << " at " << i;
    checked.add(static_cast<std::int64_t>(got.size()));
  }
}

}  // namespace
}  // namespace quantmap
