// Golden vectors of formats whose scales follow a granularity: integers, FP8 layouts, the KV cache.
#include <gtest/gtest.h>

#include "formats/encoded.hpp"
#include "samples.hpp"
#include "vectors.hpp"

namespace quantmap {
namespace {

using namespace testing;
using nlohmann::json;

// decode() must be what the file's rule says, and the fast quantizer decode()'s equal.
void expect_both_decode(const Encoded& encoded, const std::vector<float>& x, const std::string& name,
                        Checked& checked) {
  std::vector<float> reference(x.size());
  std::vector<float> fast(x.size());
  decode(encoded, reference.data());
  quantize_dequantize(encoded.spec, encoded.rows, encoded.cols, x.data(), fast.data(), nullptr, nullptr);
  expect_same_floats(fast, reference, name, checked);
}

TEST(Vectors, integer) {
  QUANTMAP_NEEDS(vectors_dir() / "integer.json");
  const json file = vector_file("integer");
  Checked checked;
  const std::int64_t rows = file["rows"];
  const std::int64_t cols = file["cols"];
  const std::vector<float> x = floats(file["x"]);
  for (const json& c : file["cases"]) {
    const std::string name = c["name"];
    const std::string granularity = c["granularity"];
    QuantSpec spec = spec_of(c["bits"] == 8 ? "int8" : "int4", Granularity::row);
    if (granularity == "tensor") spec.granularity = Granularity::tensor;
    if (granularity == "group") spec.granularity = Granularity::group;
    spec.group = c["group"];
    spec.asymmetric = !c["symmetric"].get<bool>();
    spec.range = c["mode"] == "narrow" ? IntegerRange::narrow : IntegerRange::full;
    const std::string scale_dtype = c.value("scale_dtype", "fp32");
    spec.scale = scale_dtype == "fp16"   ? ScaleType::f16
                 : scale_dtype == "bf16" ? ScaleType::bf16
                                         : ScaleType::f32;
    const Encoded encoded = encode(spec, rows, cols, x.data());
    expect_same_floats(encoded.scales, floats(c["scale"]), name + " scale", checked);
    expect_all_equal(encoded.codes, c["codes"].get<std::vector<int>>(), name + " codes", checked);
    if (spec.asymmetric) {
      expect_all_equal(encoded.zero_points, c["zero_point"].get<std::vector<int>>(), name + " zeros",
                       checked);
    }
    expect_both_decode(encoded, x, name, checked);
  }
}

TEST(Vectors, fp8_layouts) {
  QUANTMAP_NEEDS(vectors_dir() / "fp8_layouts.json");
  const json file = vector_file("fp8_layouts");
  Checked checked;
  const std::int64_t rows = file["rows"];
  const std::int64_t cols = file["cols"];
  const std::vector<float> x = floats(joined(file["x"]));
  for (const json& c : file["cases"]) {
    const std::string layout = c["layout"];
    QuantSpec spec = spec_of("fp8_e4m3", Granularity::tensor);
    if (layout == "channel") spec.granularity = Granularity::row;
    if (layout == "block") {
      spec.granularity = Granularity::tile;
      spec.tile_rows = spec.tile_cols = c["block"];
    }
    // DeepSeek's rule has a least amax and a power-of-two variant, and is no format of the registry.
    if (layout.starts_with("deepseek")) continue;
    const Encoded encoded = encode(spec, rows, cols, x.data());
    const std::string scale = c.value("scale", c.value("weight_scale_inv", ""));
    expect_same_floats(encoded.scales, floats(scale), layout + " scale", checked);
    expect_all_equal(encoded.codes, words(joined(c["codes"]), 2), layout + " codes", checked);
    if (c.contains("dequant")) {
      std::vector<float> decoded(x.size());
      decode(encoded, decoded.data());
      expect_same_floats(decoded, floats(joined(c["dequant"])), layout + " dequant", checked);
    }
    expect_both_decode(encoded, x, layout, checked);
  }
}

TEST(Vectors, kv) {
  QUANTMAP_NEEDS(vectors_dir() / "kv.json");
  const json file = vector_file("kv");
  Checked checked;
  const std::int64_t rows = file["tokens"].get<std::int64_t>() * file["heads"].get<std::int64_t>();
  const std::int64_t cols = file["head_dim"];
  const std::vector<float> x = floats(joined(file["x"]));
  for (const json& c : file["cases"]) {
    const std::string mode = c["mode"];
    QuantSpec spec;
    if (mode == "int8_per_token_head" || mode == "fp8_per_token_head") {
      spec = spec_of(mode == "int8_per_token_head" ? "int8" : "fp8_e4m3", Granularity::row);
      spec.per_head = true;
      spec.range = IntegerRange::narrow;
    } else if (mode == "fp8_per_tensor_scale_1") {
      spec = spec_of("fp8_e4m3", Granularity::tensor);
      spec.source = ScaleSource::unit;
    } else {
      continue;  // KIVI
    }
    const Encoded encoded = encode(spec, rows, cols, x.data());
    expect_same_floats(encoded.scales, floats(c["scale"]), mode + " scale", checked);
    std::vector<std::uint32_t> bytes;
    for (const std::int32_t code : encoded.codes) bytes.push_back(static_cast<std::uint32_t>(code) & 0xFFU);
    expect_all_equal(bytes, words(joined(c["codes"]), 2), mode + " codes", checked);
    expect_both_decode(encoded, x, mode, checked);
  }
}

}  // namespace
}  // namespace quantmap
