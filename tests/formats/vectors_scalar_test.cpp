// Golden vectors of the scalar codecs, and the expected errors on the Gaussian sample.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "core/random.hpp"
#include "core/sum.hpp"
#include "formats/bf16.hpp"
#include "formats/e8m0.hpp"
#include "formats/fp16.hpp"
#include "formats/fp4_e2m1.hpp"
#include "formats/fp6_e2m3.hpp"
#include "formats/fp6_e3m2.hpp"
#include "formats/fp8_e4m3.hpp"
#include "formats/fp8_e5m2.hpp"
#include "formats/kivi.hpp"
#include "formats/quantize.hpp"
#include "samples.hpp"
#include "vectors.hpp"

namespace quantmap {
namespace {

using namespace testing;
using nlohmann::json;

TEST(Vectors, scalar_codecs) {
  QUANTMAP_NEEDS(vectors_dir() / "scalar_codecs.json");
  const json file = vector_file("scalar_codecs");
  Checked checked;
  const std::map<std::string, std::function<std::uint32_t(float)>> encoders = {
      {"fp16", [](float x) { return fp16_from_float(x); }},
      {"bf16", [](float x) { return bf16_from_float(x); }},
      {"e4m3fn_sat", Fp8E4M3::encode_saturating},
      {"e4m3fn_nosat", Fp8E4M3::encode},
      {"e5m2_sat", Fp8E5M2::encode_saturating},
      {"e5m2_nosat", Fp8E5M2::encode},
      {"e2m3_sat", Fp6E2M3::encode_saturating},
      {"e3m2_sat", Fp6E3M2::encode_saturating},
      {"e2m1_sat", Fp4E2M1::encode_saturating},
      {"e8m0_rz", e8m0_toward_zero},
      {"e8m0_rp", e8m0_up},
      {"ue4m3", ue4m3_from_float},
  };
  for (const json& c : file["cases"]) {
    const std::string hex = c["x"];
    const float x = floats(hex)[0];
    for (const auto& [name, encode] : encoders) {
      if (c[name].is_null()) continue;  // E8M0 of a negative number
      const std::uint32_t want = words(c[name], c[name].get<std::string>().size())[0];
      const std::uint32_t got = encode(x);
      if (std::isnan(x) && (name == "fp16" || name == "bf16")) {
        const auto bits = static_cast<std::uint16_t>(got);
        EXPECT_TRUE(std::isnan(name == "fp16" ? float_from_fp16(bits) : float_from_bf16(bits))) << name;
      } else {
        EXPECT_EQ(got, want) << name << " of " << x << " (" << hex << ")";
      }
      checked.add();
    }
  }
  const std::map<std::string, std::function<float(std::uint32_t)>> decoders = {{"e4m3fn", Fp8E4M3::decode},
                                                                               {"e5m2", Fp8E5M2::decode},
                                                                               {"e2m1", Fp4E2M1::decode},
                                                                               {"e2m3", Fp6E2M3::decode},
                                                                               {"e3m2", Fp6E3M2::decode}};
  for (const auto& [name, decode] : decoders) {
    const json& table = file["decode"][name];
    for (std::uint32_t code = 0; code < table.size(); ++code) {
      const std::string want = table[code];
      const float got = decode(code);
      EXPECT_TRUE(want == "nan" ? std::isnan(got) : same(got, floats(want)[0])) << name << " " << code;
      checked.add();
    }
  }
}

// Rows of gaussian.json by name, with the spec that each is.
std::map<std::string, QuantSpec> gaussian_specs() {
  std::map<std::string, QuantSpec> specs;
  specs["fp16"] = spec_of("fp16");
  specs["bf16"] = spec_of("bf16");
  for (const char* id : {"fp8_e4m3", "fp8_e5m2"}) {
    const std::string name = id == std::string("fp8_e4m3") ? "e4m3fn" : "e5m2";
    specs[fmt::format("{} per-tensor amax/max", name)] = spec_of(id, Granularity::tensor);
    specs[fmt::format("{} per-row amax/max", name)] = spec_of(id, Granularity::row);
    QuantSpec unit = spec_of(id, Granularity::tensor);
    unit.source = ScaleSource::unit;
    specs[fmt::format("{} cast, no scale", name)] = unit;
  }
  for (const char* element : {"e2m3", "e3m2", "e2m1"}) {
    const std::string id = std::string(element == std::string("e2m1") ? "fp4_" : "fp6_") + element;
    QuantSpec unit = spec_of(id.c_str(), Granularity::tensor);
    unit.source = ScaleSource::unit;
    specs[element + std::string(" cast, no scale")] = unit;
  }
  specs["e4m3fn group 128"] = spec_of("fp8_e4m3", Granularity::group, 128);
  QuantSpec tile = spec_of("fp8_e4m3", Granularity::tile);
  tile.tile_rows = tile.tile_cols = 128;
  specs["e4m3fn block 128x128"] = tile;
  for (const int bits : {8, 6, 4, 3, 2}) {
    const std::string id = fmt::format("int{}", bits);
    for (const std::int32_t group : {-1, 0, 128, 64, 32}) {
      if (bits != 8 && bits != 4 && (group == -1 || group == 64)) continue;  // not in the table
      const std::string where = group < 0 ? "tensor" : group == 0 ? "row" : fmt::format("g{}", group);
      QuantSpec spec = spec_of(id.c_str(),
                               group < 0    ? Granularity::tensor
                               : group == 0 ? Granularity::row
                                            : Granularity::group,
                               std::max(group, 0));
      specs[fmt::format("{} sym full {}", id, where)] = spec;
      spec.range = IntegerRange::narrow;
      specs[fmt::format("{} sym narrow {}", id, where)] = spec;
      spec.asymmetric = true;
      specs[fmt::format("{} asym {}", id, where)] = spec;
    }
  }
  const std::map<std::string, MxScaleRule> rules = {{"floor", MxScaleRule::floor},
                                                    {"ceil", MxScaleRule::ceil},
                                                    {"rceil", MxScaleRule::rceil},
                                                    {"even", MxScaleRule::even}};
  for (const auto& [rule_name, rule] : rules) {
    for (const auto& [id, element] : {std::pair{"mxfp8_e4m3", "e4m3fn"},
                                      {"mxfp8_e5m2", "e5m2"},
                                      {"mxfp6_e2m3", "e2m3"},
                                      {"mxfp6_e3m2", "e3m2"},
                                      {"mxfp4", "e2m1"}}) {
      QuantSpec spec = spec_of(id);
      spec.rule = rule;
      specs[fmt::format("mx {} {}", element, rule_name)] = spec;
    }
  }
  specs["mxint8"] = spec_of("mxint8");
  specs["nvfp4 canonical"] = spec_of("nvfp4");
  specs["nvfp4 single level (g=1)"] = spec_of("nvfp4");
  specs["nvfp4 single level (g=1)"].no_global = true;
  specs["nvfp4 4over6 MSE max256"] = spec_of("nvfp4");
  specs["nvfp4 4over6 MSE max256"].four_over_six = true;
  specs["nf4 b64"] = spec_of("nf4");
  specs["fp4 b64"] = spec_of("bnb_fp4");
  specs["nf4 b64 double quant"] = spec_of("nf4");
  specs["nf4 b64 double quant"].nested = true;
  for (const Format& format : formats()) {
    if (format.kind != FormatKind::ggml) continue;
    std::string name(format.id.starts_with("ggml_") ? format.id.substr(5) : format.id);
    if (name.ends_with("_k")) name.back() = 'K';
    specs["gguf " + name] = spec_of(format.id.data());
  }
  return specs;
}

struct Errors {
  double relative, max_abs;
};
Errors errors(const std::vector<float>& x, const std::vector<float>& y) {
  Sum difference;
  Sum norm;
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    difference.add(d * d);
    norm.add(static_cast<double>(x[i]) * static_cast<double>(x[i]));
    largest = std::max(largest, std::abs(d));
  }
  return {std::sqrt(difference.value() / norm.value()), largest};
}

void expect_errors(const json& row, const std::vector<float>& x, const std::vector<float>& y,
                   Checked& checked) {
  const std::string name = row["name"];
  const Errors got = errors(x, y);
  const double want = row["rel"];
  EXPECT_TRUE(std::abs(got.relative - want) <= 1e-5 * want) << name << ": " << got.relative << " " << want;
  const double max_abs = row["max_abs"];
  EXPECT_TRUE(std::abs(got.max_abs - max_abs) <= 0x1p-22) << name << ": " << got.max_abs << " " << max_abs;
  checked.add(2);
}

// 1e-5 relative, the sample being equal to the bit; the largest error of one value to half an ulp of the
// values, since the table did not round code * scale.
TEST(Vectors, gaussian) {
  QUANTMAP_NEEDS(vectors_dir() / "gaussian.json");
  const json file = vector_file("gaussian");
  Checked checked;
  const std::int64_t rows = file["rows"];
  const std::int64_t cols = file["cols"];
  std::vector<float> x(static_cast<std::size_t>(rows * cols));
  fill_gaussian(file["seed"], x.data(), rows * cols);
  const std::vector<float> first = floats(file["first8"]);
  expect_same_floats({x.begin(), x.begin() + static_cast<std::ptrdiff_t>(first.size())}, first, "first8",
                     checked);
  const std::vector<float> last = floats(file["last4"]);
  expect_same_floats({x.end() - static_cast<std::ptrdiff_t>(last.size()), x.end()}, last, "last4", checked);

  std::vector<float> y(x.size());
  auto specs = gaussian_specs();
  for (const json& row : file["table"]) {
    const std::string name = row["name"];
    std::int64_t width = cols;
    QuantSpec spec;
    if (name == "kv int8 per-token-head d128" || name == "kv fp8 per-token-head d128") {
      width = 128;
      spec = spec_of(name.starts_with("kv int8") ? "int8" : "fp8_e4m3", Granularity::row);
      spec.per_head = true;
      spec.range = IntegerRange::narrow;
    } else if (const auto found = specs.find(name); found != specs.end()) {
      spec = found->second;
      specs.erase(found);
    } else if (name.starts_with("kv kivi")) {
      const KiviOptions options{KiviSide::values, name.starts_with("kv kivi 2") ? 2 : 4, 32, ScaleType::f32};
      decode_kivi(encode_kivi(options, rows, cols, x.data()), y.data());
      expect_errors(row, x, y, checked);
      continue;
    } else {
      continue;  // another tool's rule
    }
    quantize_dequantize(spec, rows * cols / width, width, x.data(), y.data(), nullptr, nullptr);
    expect_errors(row, x, y, checked);
  }
  for (const auto& [name, spec] : specs) ADD_FAILURE() << "no row of that name: " << name;
}

}  // namespace
}  // namespace quantmap
