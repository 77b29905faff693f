// storage.json of the golden vectors: whole files as hex, made by safetensors 0.8.0 and gguf 0.19.0.
#include <gtest/gtest.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "checkpoint/expect_error.hpp"
#include "checkpoint/gguf.hpp"
#include "checkpoint/make_files.hpp"
#include "checkpoint/safetensors.hpp"
#include "core/mapped_file.hpp"
#include "support/paths.hpp"

namespace quantmap::testing {
namespace {

std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

// Concatenated 8-digit bit patterns of FP32.
std::vector<float> floats_from_hex(const std::string& hex) {
  std::vector<float> out;
  for (std::size_t i = 0; i + 7 < hex.size(); i += 8)
    out.push_back(
        std::bit_cast<float>(static_cast<std::uint32_t>(std::stoul(hex.substr(i, 8), nullptr, 16))));
  return out;
}

TEST(Vectors, storage) {
  const auto path = vectors_dir() / "storage.json";
  QUANTMAP_NEEDS(path);
  const auto vectors = nlohmann::json::parse(read_text_file(path));
  int checked = 0;

  const std::string plain = from_hex(vectors.at("safetensors_np"));
  const SafetensorsFile safetensors = SafetensorsFile::parse(as_span(plain), "safetensors_np");
  EXPECT_EQ(safetensors.tensors().size(), vectors.at("safetensors_np_expect").size());
  for (const auto& [name, expect] : vectors.at("safetensors_np_expect").items()) {
    const SafetensorsEntry* entry = safetensors.find(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->dtype, expect.at("dtype").get<std::string>());
    EXPECT_EQ(entry->shape, expect.at("shape").get<std::vector<std::int64_t>>());
    if (!expect.contains("values")) continue;
    const std::vector<float> values = floats_from_hex(expect.at("values"));
    ASSERT_EQ(entry->bytes, static_cast<std::int64_t>(values.size() * 4));
    EXPECT_EQ(std::memcmp(entry->data, values.data(), values.size() * 4), 0) << name;
    ++checked;
  }
  ++checked;

  const std::string low = from_hex(vectors.at("safetensors_lowbit"));
  const SafetensorsFile lowbit = SafetensorsFile::parse(as_span(low), "safetensors_lowbit");
  const auto& header = vectors.at("safetensors_lowbit_header");
  EXPECT_EQ(lowbit.tensors().size(), header.size());
  for (const auto& [name, expect] : header.items()) {
    const SafetensorsEntry* entry = lowbit.find(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->dtype, expect.at("dtype").get<std::string>());
    EXPECT_EQ(entry->shape, expect.at("shape").get<std::vector<std::int64_t>>());
    const auto offsets = expect.at("data_offsets").get<std::vector<std::int64_t>>();
    EXPECT_EQ(entry->bytes, offsets[1] - offsets[0]);
    EXPECT_EQ(entry->data - lowbit.find("i32")->data, offsets[0]);  // i32 is the first
  }
  ++checked;

  const std::string bytes = from_hex(vectors.at("gguf"));
  const GgufFile gguf = GgufFile::parse(as_span(bytes), "gguf");
  const auto& expect = vectors.at("gguf_expect");
  EXPECT_EQ(gguf.version(), expect.at("version").get<std::uint32_t>());
  EXPECT_EQ(gguf.keys().size(), expect.at("kv_count").get<std::size_t>());
  EXPECT_EQ(gguf.string("general.architecture"), "llama");
  EXPECT_EQ(gguf.integer("test.u32"), 77);
  EXPECT_EQ(gguf.string("test.str"), "value");
  EXPECT_EQ(gguf.integers("test.arr"), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(gguf.number("test.f"), 0.5);
  EXPECT_EQ(gguf.boolean("test.b"), true);
  ASSERT_EQ(gguf.tensors().size(), expect.at("tensors").size());
  for (const auto& tensor : expect.at("tensors")) {
    const GgufTensor* found = gguf.find(tensor.at("name").get<std::string>());
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->type->id, tensor.at("type").get<int>());
    auto shape = tensor.at("ne").get<std::vector<std::int64_t>>();
    std::reverse(shape.begin(), shape.end());
    EXPECT_EQ(found->shape, shape);
    EXPECT_EQ(found->data - gguf.bytes().data(), tensor.at("abs_offset").get<std::ptrdiff_t>());
    EXPECT_EQ(found->bytes, tensor.at("nbytes").get<std::int64_t>());
  }
  const std::vector<float> expected = floats_from_hex(expect.at("q4_0_dequant"));
  std::vector<float> decoded(expected.size());
  const GgufTensor* blocks = gguf.find("blk.0.w");
  decode_ggml(*blocks->type, blocks->data, static_cast<std::int64_t>(decoded.size()), decoded.data());
  EXPECT_EQ(decoded, expected);  // numerically: -0 equals 0
  ++checked;

  for (const auto& bad : vectors.at("bad_safetensors")) {
    const std::string file = from_hex(bad.at("hex"));
    expect_line(input_error([&] { SafetensorsFile::parse(as_span(file), "bad"); }), {"bad safetensors file"});
    ++checked;
  }
  for (const auto& bad : vectors.at("bad_gguf")) {
    const std::string file = from_hex(bad.at("hex"));
    expect_line(input_error([&] { GgufFile::parse(as_span(file), "bad"); }), {"bad GGUF file"});
    ++checked;
  }
  std::cout << checked << " checked\n";
}

}  // namespace
}  // namespace quantmap::testing
