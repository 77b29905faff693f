// Golden vectors of formats whose scales follow a granularity: integers, FP8 layouts, the KV cache.
#include <gtest/gtest.h>

#include <cmath>

#include "formats/encoded.hpp"
#include "formats/fp8_e4m3.hpp"
#include "formats/kivi.hpp"
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

// DeepSeek's activations: groups with amax >= 1e-4, their scale rounded up to a power of two for ue8m0. No
// format of the registry.
void check_deepseek(const json& c, bool power_of_two, const std::vector<float>& x, std::int64_t rows,
                    std::int64_t cols, Checked& checked) {
  const std::int64_t group = c["group"];
  std::vector<float> scales;
  std::vector<std::uint32_t> codes;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t begin = 0; begin < cols; begin += group) {
      const float* from = x.data() + row * cols + begin;
      const std::int64_t count = std::min(group, cols - begin);
      float amax = 1e-4F;
      for (std::int64_t i = 0; i < count; ++i) amax = std::max(amax, std::abs(from[i]));
      float scale = amax / 448.0F;
      if (power_of_two) scale = std::exp2(std::ceil(std::log2(scale)));
      scales.push_back(scale);
      for (std::int64_t i = 0; i < count; ++i) codes.push_back(Fp8E4M3::encode_saturating(from[i] / scale));
    }
  }
  expect_same_floats(scales, floats(c["scale"]), c["layout"], checked);
  expect_all_equal(codes, words(joined(c["codes"]), 2), c["layout"], checked);
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
    if (layout.starts_with("deepseek")) {
      check_deepseek(c, layout.ends_with("ue8m0"), x, rows, cols, checked);
      continue;
    }
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

// One head after the other; the file's codes have the cache's order [head][token][channel].
void check_kivi(const json& file, const json& c, const std::vector<float>& x, Checked& checked) {
  const std::string mode = c["mode"];
  const std::int64_t tokens = file["tokens"], heads = file["heads"], channels = file["head_dim"];
  const bool keys = mode.starts_with("kivi_k");
  KiviOptions options;
  options.side = keys ? KiviSide::keys : KiviSide::values;
  options.bits = mode.find("4bit") != std::string::npos ? 4 : 2;
  options.group = c[keys ? "group_tokens" : "group_channels"];
  options.scale = ScaleType::f32;
  std::vector<float> scales, minima;
  std::vector<std::uint8_t> codes;
  for (std::int64_t head = 0; head < heads; ++head) {
    std::vector<float> one;
    for (std::int64_t token = 0; token < tokens; ++token) {
      const float* row = x.data() + (token * heads + head) * channels;
      one.insert(one.end(), row, row + channels);
    }
    const KiviEncoded encoded = encode_kivi(options, tokens, channels, one.data());
    scales.insert(scales.end(), encoded.scales.begin(), encoded.scales.end());
    minima.insert(minima.end(), encoded.minima.begin(), encoded.minima.end());
    codes.insert(codes.end(), encoded.codes.begin(), encoded.codes.end());
  }
  expect_same_floats(scales, floats(c["scale"]), mode + " scale", checked);
  expect_same_floats(minima, floats(c["min"]), mode + " min", checked);
  expect_all_equal(codes, words(joined(c["codes"]), 2), mode + " codes", checked);
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
      check_kivi(file, c, x, checked);
      continue;
    }
    const Encoded encoded = encode(spec, rows, cols, x.data());
    expect_same_floats(encoded.scales, floats(c["scale"]), mode + " scale", checked);
    std::vector<std::uint32_t> bytes;
    for (const std::int32_t code : encoded.codes) bytes.push_back(static_cast<std::uint32_t>(code) & 0xFFU);
    expect_all_equal(bytes, words(joined(c["codes"]), 2), mode + " codes", checked);
    expect_both_decode(encoded, x, mode, checked);
    if (c.contains("codes_truncating_pre_45361")) {
      // vLLM before PR 45361: toward zero, under the same scales (D15).
      std::vector<std::uint32_t> truncated;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float inverse = 1.0F / encoded.scales[i / static_cast<std::size_t>(cols)];
        const float held = std::clamp(x[i] * inverse, -128.0F, 127.0F);
        truncated.push_back(static_cast<std::uint32_t>(static_cast<std::int32_t>(std::trunc(held))) & 0xFFU);
      }
      expect_all_equal(truncated, words(joined(c["codes_truncating_pre_45361"]), 2), mode + " truncating",
                       checked);
    }
  }
}

// `rtn` and `mse` only: the other methods are not the formats'. GPTQ's `sym` is our `full`; its search starts
// from a range that a row without negative values does not mirror (D6), which this matrix has none of.
TEST(Vectors, methods) {
  QUANTMAP_NEEDS(vectors_dir() / "methods.json");
  const json file = vector_file("methods");
  Checked checked;
  const std::vector<float> w = floats(joined(file["W"]));
  const auto rows = static_cast<std::int64_t>(file["W"].size());
  const std::int64_t cols = static_cast<std::int64_t>(w.size()) / rows;
  QuantSpec spec = spec_of("int4", Granularity::row);
  for (const json& c : file["cases"]) {
    const std::string method = c["method"];
    if (method == "rtn") {
      spec.method = Method::rtn;
      std::vector<float> y(w.size());
      quantize_dequantize(spec, rows, cols, w.data(), y.data(), nullptr, nullptr);
      expect_same_floats(y, floats(joined(c["weight_dequant"])), method, checked);
    } else if (method == "mse_clip_grid_gptq") {
      spec.method = Method::mse;
      const Encoded encoded = encode(spec, rows, cols, w.data());
      expect_same_floats(encoded.scales, floats(c["scale"]), method, checked);
      expect_both_decode(encoded, w, method, checked);
    }
  }
}

}  // namespace
}  // namespace quantmap
