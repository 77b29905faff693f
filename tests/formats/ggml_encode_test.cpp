// GGUF blocks encoded: libggml's bytes, what is not finite, rows that are not whole blocks.
#include "formats/ggml_encode.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "formats/encoded.hpp"
#include "formats/ggml_rows.hpp"
#include "samples.hpp"
#include "vectors.hpp"

namespace quantmap {
namespace {

using namespace testing;

const GgmlType& type_named(std::string name) {
  for (char& c : name) c = static_cast<char>(std::toupper(c));
  for (const GgmlType& type : ggml_types()) {
    if (type.name == name) return type;
  }
  throw std::logic_error(name);
}

std::vector<const Format*> ggml_formats() {
  std::vector<const Format*> found;
  for (const Format& format : formats()) {
    if (format.kind == FormatKind::ggml) found.push_back(&format);
  }
  return found;
}

std::string hex_of(const std::vector<std::byte>& bytes) {
  std::string text;
  char digits[3];
  for (const std::byte byte : bytes) {
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(byte));
    text += digits;
  }
  return text;
}

std::vector<std::byte> encoded(const GgmlType& type, const std::vector<float>& x) {
  std::vector<std::byte> bytes(x.size() / static_cast<std::size_t>(type.block) *
                               static_cast<std::size_t>(type.bytes));
  encode_ggml(type, x.data(), static_cast<std::int64_t>(x.size()), bytes.data());
  return bytes;
}

std::vector<float> decoded(const GgmlType& type, const std::vector<std::byte>& bytes) {
  std::vector<float> y(bytes.size() / static_cast<std::size_t>(type.bytes) *
                       static_cast<std::size_t>(type.block));
  decode_ggml(type, bytes.data(), static_cast<std::int64_t>(y.size()), y.data());
  return y;
}

// libggml's blocks: every type of the registry, both ways. (What it writes with an importance matrix is
// another search, which quantmap does not do.)
TEST(Vectors, gguf) {
  QUANTMAP_NEEDS(vectors_dir() / "gguf.json");
  Checked checked;
  std::size_t types = 0;
  const nlohmann::json file = vector_file("gguf");
  for (const auto& c : file["cases"]) {
    const GgmlType& type = type_named(c["type"]);
    for (std::size_t i = 0; i < c["x"].size(); ++i) {
      const std::vector<float> x = floats(c["x"][i]);
      const std::vector<std::byte> bytes = encoded(type, x);
      EXPECT_EQ(hex_of(bytes), c["bytes"][i].get<std::string>()) << type.name << " block " << i;
      const std::vector<float> want = floats(c["dequant"][i]);
      const std::vector<float> got = decoded(type, bytes);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t k = 0; k < got.size(); ++k) ASSERT_EQ(got[k], want[k]) << type.name << " at " << k;
      checked.add(static_cast<std::int64_t>(got.size()));
    }
    ++types;
  }
  EXPECT_EQ(types, ggml_formats().size());
}

// gguf-py, which is numpy and shares no code with libggml (tests/golden/formats/make_gguf_py.py).
TEST(GgmlEncode, BytesAreThoseOfGgufPy) {
  const nlohmann::json file =
      nlohmann::json::parse(std::ifstream(source_dir() / "tests/golden/formats/gguf_py.json"));
  Checked checked;
  for (const auto& c : file["cases"]) {
    const std::vector<float> x = floats(c["x"]);
    for (const auto& [name, bytes] : c["bytes"].items()) {
      EXPECT_EQ(hex_of(encoded(type_named(name), x)), bytes.get<std::string>()) << name << ", " << c["name"];
      checked.add(static_cast<std::int64_t>(x.size()));
    }
  }
}

// One NaN or Inf makes NaN of what shares its scale, is counted, and leaves the other blocks alone.
TEST(GgmlEncode, NothingThatIsNotFiniteBecomesANumber) {
  for (const Format* format : ggml_formats()) {
    const GgmlType& type = ggml_type_of(*format);
    const std::int64_t shared = type.name == "NVFP4" ? 16 : type.block;
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      const std::vector<float> x = sample(kFiniteSamples[0], {1, 1024});
      std::vector<float> with = x;
      with[static_cast<std::size_t>(type.block) + 3] = bad;
      QuantCounts counts;
      std::vector<float> y(x.size());
      std::vector<float> z(x.size());
      round_ggml(type, x.data(), 1024, y.data(), counts);
      EXPECT_EQ(counts, QuantCounts{}) << type.name;
      round_ggml(type, with.data(), 1024, z.data(), counts);
      EXPECT_EQ(counts.nonfinite, 1) << type.name;
      for (std::int64_t i = 0; i < 1024; ++i) {
        const auto k = static_cast<std::size_t>(i);
        const bool near = i >= type.block && i < type.block + shared;
        ASSERT_TRUE(near ? std::isnan(z[k]) : same(y[k], z[k])) << type.name << " at " << i;
      }
    }
  }
}

TEST(GgmlEncode, CountsZerosUnderflowAndOverflow) {
  for (const Format* format : ggml_formats()) {
    const GgmlType& type = ggml_type_of(*format);
    const auto n = static_cast<std::size_t>(type.block);
    const struct {
      float value;
      QuantCounts want;
    } cases[] = {
        {0, {0, 0, 1, 0}}, {-0.0F, {0, 0, 1, 0}}, {1e-20F, {0, 0, 0, 1}}, {1e11F, {type.block, 0, 0, 0}}};
    for (const auto& c : cases) {
      // MXFP4's scale spans FP32; NVFP4's is clamped, as its elements are.
      if (c.value > 1 && (type.name == "MXFP4" || type.name == "NVFP4")) continue;
      if (c.value > 0 && type.name == "MXFP4") continue;
      std::vector<float> x(n, c.value);
      if (c.value > 0) x[0] = -c.value;
      std::vector<float> y(n);
      QuantCounts counts;
      round_ggml(type, x.data(), type.block, y.data(), counts);
      EXPECT_EQ(counts.zero_groups, c.want.zero_groups) << type.name << " " << c.value;
      EXPECT_EQ(counts.underflow_blocks, c.want.underflow_blocks) << type.name << " " << c.value;
      EXPECT_EQ(counts.saturated, c.want.saturated) << type.name << " " << c.value;
      if (c.value > 1) continue;
      for (const float value : y) ASSERT_EQ(value, 0) << type.name;
    }
  }
}

// Types whose largest value is kept, up to FP16's rounding of the scale: encoding what was decoded gives the
// same values. (Q4_1 and Q5_1 round the minimum too; the searches may find another scale; Q1_0 takes a mean.)
TEST(GgmlEncode, DecodedBlocksEncodeToThemselves) {
  for (const char* name : {"Q4_0", "Q5_0", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4", "Q1_0"}) {
    const GgmlType& type = type_named(name);
    const std::vector<float> x = sample(kFiniteSamples[0], {16, 1024});
    const std::vector<std::byte> once = encoded(type, x);
    const std::vector<float> y = decoded(type, once);
    const std::vector<float> z = decoded(type, encoded(type, y));
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_TRUE(std::abs(z[i] - y[i]) <= std::abs(y[i]) * 0x1p-9F) << name << " at " << i;
    }
  }
}

// Half a step of the sub-block's grid, with a margin for scales that are coded themselves.
TEST(GgmlEncode, ErrorIsBoundedByTheStep) {
  const struct {
    const char* name;
    int run;        // values that share a scale
    double steps;   // of a grid over the run's range (with 0)
    double margin;  // in steps
  } cases[] = {{"Q4_0", 32, 16, 1.01}, {"Q4_1", 32, 15, 0.52}, {"Q5_0", 32, 32, 1.02}, {"Q5_1", 32, 31, 0.54},
               {"Q8_0", 32, 254, 0.6}, {"Q4_K", 32, 15, 1.5},  {"Q5_K", 32, 31, 1.5},  {"Q6_K", 16, 63, 2},
               {"Q3_K", 16, 7, 1.5},   {"Q2_K", 16, 3, 1.5}};
  for (const auto& c : cases) {
    const GgmlType& type = type_named(c.name);
    for (const std::size_t kind : {0UL, 1UL}) {
      const std::vector<float> x = sample(kFiniteSamples[kind], {8, 1024});
      const std::vector<float> y = decoded(type, encoded(type, x));
      const bool one_scale = c.name[3] != 'K' && c.name[3] != '1';
      for (std::size_t i = 0; i < x.size(); i += static_cast<std::size_t>(c.run)) {
        double low = 0;
        double high = 0;
        for (std::size_t k = i; k < i + static_cast<std::size_t>(c.run); ++k) {
          low = std::min(low, static_cast<double>(x[k]));
          high = std::max(high, static_cast<double>(x[k]));
        }
        const bool symmetric = one_scale || c.name == std::string("Q6_K") || c.name == std::string("Q3_K");
        const double step = (symmetric ? 2 * std::max(high, -low) : high - low) / c.steps;
        for (std::size_t k = i; k < i + static_cast<std::size_t>(c.run); ++k) {
          const double error = std::abs(static_cast<double>(y[k]) - static_cast<double>(x[k]));
          ASSERT_TRUE(error <= c.margin * step) << c.name << " at " << k << ": " << error / step;
        }
      }
    }
  }
}

// faults.md, B21: rows that are no multiple of the block, as llama-quantize treats them (SmolLM2-135M has 576
// columns), in quantizer and size alike.
TEST(GgmlEncode, RowsThatAreNotWholeBlocksFallBackAsLlamaQuantizeDoes) {
  const struct {
    const char* format;
    std::int64_t cols;
    const char* stored;
  } cases[] = {{"q4_k", 1536, "Q4_K"},       {"q4_k", 576, "Q5_0"},     {"q5_k", 576, "Q5_1"},
               {"q6_k", 576, "Q8_0"},        {"q2_k", 576, "Q4_0"},     {"q3_k", 14464, "Q4_0"},
               {"tq1_0", 576, "Q4_0"},       {"tq2_0", 576, "Q4_0"},    {"iq4_xs", 576, "IQ4_NL"},
               {"iq4_nl", 576, "IQ4_NL"},    {"q2_0", 96, "Q4_0"},      {"q2_0", 576, "Q2_0"},
               {"q8_0", 576, "Q8_0"},        {"q8_0", 40, "F16"},       {"q4_k", 40, "F16"},
               {"ggml_mxfp4", 576, "MXFP4"}, {"ggml_nvfp4", 96, "F16"}, {"q1_0", 576, "F16"}};
  for (const auto& c : cases) {
    const GgmlType& stored = ggml_stored_type(*find_format(c.format), c.cols);
    EXPECT_EQ(stored.name, c.stored) << c.format << " " << c.cols;
    const QuantSpec spec = spec_of(c.format);
    EXPECT_EQ(storage_bits(spec, 3, c.cols), 3 * c.cols / stored.block * stored.bytes * 8) << c.format;
    const std::vector<float> x = sample(kFiniteSamples[1], {3, c.cols});
    std::vector<float> got(x.size());
    quantize_dequantize(spec, 3, c.cols, x.data(), got.data(), nullptr, nullptr);
    const std::vector<float> want = decoded(stored, encoded(stored, x));
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_TRUE(same(got[i], want[i])) << c.format << " at " << i;
  }
}

TEST(GgmlEncode, RefusesWhatItCannotEncode) {
  const float x[64] = {};
  std::byte out[512];
  EXPECT_THROW(encode_ggml(type_named("Q4_0"), x, 33, out), Error);
  EXPECT_THROW(encode_ggml(type_named("IQ2_S"), x, 0, out), Error);
}

}  // namespace
}  // namespace quantmap
