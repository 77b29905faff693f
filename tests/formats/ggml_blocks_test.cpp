// GGUF tensor types: the table, and blocks decoded against libggml and by hand.
#include "formats/ggml_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/random.hpp"
#include "formats/bf16.hpp"
#include "formats/fp16.hpp"
#include "support/paths.hpp"
#include "vectors.hpp"

namespace quantmap {
namespace {

using namespace testing;

std::vector<std::byte> bytes_of(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (const std::uint32_t word : words(hex, 2)) bytes.push_back(static_cast<std::byte>(word));
  return bytes;
}

TEST(GgmlTypes, AreByRisingIdAndFoundByIt) {
  std::int32_t last = -1;
  for (const GgmlType& type : ggml_types()) {
    EXPECT_GT(type.id, last);
    last = type.id;
    EXPECT_EQ(find_ggml_type(type.id), &type);
    EXPECT_GT(type.bytes, 0);
  }
  for (const std::int32_t removed : {4, 5, 31, 32, 33, 36, 37, 38, 43, -1, 1000}) {
    EXPECT_EQ(find_ggml_type(removed), nullptr) << removed;
  }
}

TEST(GgmlTypes, BitsPerWeightAreThoseOfTheTable) {
  const struct {
    const char* name;
    double bits;
  } cases[] = {{"Q4_0", 4.5},   {"Q4_1", 5},      {"Q5_0", 5.5},     {"Q5_1", 6},
               {"Q8_0", 8.5},   {"Q2_K", 2.625},  {"Q3_K", 3.4375},  {"Q4_K", 4.5},
               {"Q5_K", 5.5},   {"Q6_K", 6.5625}, {"IQ4_NL", 4.5},   {"IQ4_XS", 4.25},
               {"MXFP4", 4.25}, {"NVFP4", 4.5},   {"TQ1_0", 1.6875}, {"TQ2_0", 2.0625}};
  for (const auto& c : cases) {
    const auto types = ggml_types();
    const auto type =
        std::find_if(types.begin(), types.end(), [&](const GgmlType& t) { return t.name == c.name; });
    ASSERT_NE(type, types.end()) << c.name;
    EXPECT_EQ(type->bytes * 8.0 / type->block, c.bits) << c.name;
  }
}

// One block a type from libggml (tests/golden/formats says how they were made).
TEST(GgmlBlocks, DecodeAsLibggmlDoes) {
  const auto file =
      nlohmann::json::parse(std::ifstream(source_dir() / "tests/golden/formats/ggml_blocks.json"));
  int types = 0;
  for (const auto& row : file["blocks"]) {
    const GgmlType* type = find_ggml_type(row["id"]);
    ASSERT_NE(type, nullptr);
    const std::vector<std::byte> block = bytes_of(row["bytes"]);
    const std::vector<float> want = floats(row["values"]);
    ASSERT_EQ(block.size(), static_cast<std::size_t>(type->bytes));
    std::vector<float> got(want.size());
    decode_ggml(*type, block.data(), static_cast<std::int64_t>(got.size()), got.data());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], want[i]) << type->name << " at " << i;
    ++types;
  }
  EXPECT_EQ(types, 11);
}

// faults.md, B33: the largest element is -8 * d, so d carries its sign; a zero block has d = -0 and codes 8.
TEST(GgmlBlocks, Q4_0KeepsTheSignOfItsLargestElement) {
  const GgmlType& q4_0 = *find_ggml_type(2);
  const struct {
    std::uint16_t d;
    std::uint8_t codes[3];
    float values[3];
  } cases[] = {{0x3000, {0, 12, 15}, {-1, 0.5F, 0.875F}},  // d 0.125
               {0xB000, {0, 12, 15}, {1, -0.5F, -0.875F}},
               {0x8000, {8, 8, 8}, {0, 0, 0}}};
  for (const auto& c : cases) {
    std::byte block[18] = {std::byte(c.d & 0xFF), std::byte(c.d >> 8)};
    for (int j = 0; j < 16; ++j) block[2 + j] = std::byte(0x88);
    for (int j = 0; j < 3; ++j) block[2 + j] = std::byte(0x80 | c.codes[j]);
    float values[32];
    decode_ggml(q4_0, block, 32, values);
    for (int j = 0; j < 3; ++j) EXPECT_EQ(values[j], c.values[j]);
    for (int j = 3; j < 32; ++j) EXPECT_EQ(values[j], 0);
  }
}

// faults.md, S09: a block of zero bytes decodes to zeros in every type, never to NaN.
TEST(GgmlBlocks, ZeroBytesDecodeToZeros) {
  for (const GgmlType& type : ggml_types()) {
    if (!type.decoded) continue;
    const std::vector<std::byte> block(static_cast<std::size_t>(type.bytes));
    std::vector<float> values(static_cast<std::size_t>(type.block), 1);
    decode_ggml(type, block.data(), type.block, values.data());
    for (const float value : values) EXPECT_EQ(value, 0) << type.name;
  }
}

TEST(GgmlBlocks, PlainTypesAreTheirCodecs) {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  std::vector<float> values(bits.size());
  const auto* data = reinterpret_cast<const std::byte*>(bits.data());
  decode_ggml(*find_ggml_type(1), data, 65536, values.data());
  for (std::size_t i = 0; i < bits.size(); ++i) ASSERT_TRUE(same(values[i], float_from_fp16(bits[i]))) << i;
  decode_ggml(*find_ggml_type(30), data, 65536, values.data());
  for (std::size_t i = 0; i < bits.size(); ++i) ASSERT_TRUE(same(values[i], float_from_bf16(bits[i]))) << i;
  const float three[] = {1.5F, -0.0F, 3e-40F};
  decode_ggml(*find_ggml_type(0), reinterpret_cast<const std::byte*>(three), 3, values.data());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(same(values[i], three[i]));
}

TEST(GgmlBlocks, ManyBlocksAreEachBlockAlone) {
  SplitMix64 random(11);
  for (const GgmlType& type : ggml_types()) {
    if (!type.decoded) continue;
    const auto bytes = static_cast<std::size_t>(type.bytes);
    const auto block = static_cast<std::size_t>(type.block);
    std::vector<std::byte> data(7 * bytes + 1);
    for (std::byte& byte : data) byte = std::byte(random.next() >> 56);
    std::vector<float> together(7 * block);
    decode_ggml(type, data.data() + 1, static_cast<std::int64_t>(together.size()), together.data());
    for (std::size_t k = 0; k < 7; ++k) {
      std::vector<float> alone(block);
      decode_ggml(type, data.data() + 1 + k * bytes, type.block, alone.data());
      for (std::size_t i = 0; i < block; ++i)
        ASSERT_TRUE(same(alone[i], together[k * block + i])) << type.name;
    }
  }
}

TEST(GgmlBlocks, RefusesWhatItCannotDecode) {
  float out[32];
  const std::byte data[64] = {};
  EXPECT_THROW(decode_ggml(*find_ggml_type(2), data, 33, out), Error);  // not whole blocks
  EXPECT_THROW(decode_ggml(*find_ggml_type(9), data, 32, out), Error);  // known, not decoded
  try {
    decode_ggml(*find_ggml_type(9), data, 32, out);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_NE(std::string(error.what()).find("Q8_1"), std::string::npos);
  }
}

}  // namespace
}  // namespace quantmap
