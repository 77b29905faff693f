#include "checkpoint/safetensors.hpp"

#include <gtest/gtest.h>

#include "checkpoint/expect_error.hpp"
#include "checkpoint/make_files.hpp"
#include "support/paths.hpp"

namespace quantmap::testing {
namespace {

SafetensorsFile parse(const std::string& bytes) {
  return SafetensorsFile::parse(as_span(bytes), "x.safetensors");
}

struct Refused {
  const char* why;
  std::string bytes;
  std::vector<std::string> parts;
};

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST(Safetensors, WhatCannotBeTrustedIsRefusedInOneLine) {
  const std::string four(4, '\0');
  const std::string eight(8, '\0');
  const std::string w = R"({"w":)";
  const std::vector<Refused> cases = {
      {"shorter than the length field", "\1\2\3", {"header length", "8 bytes", "3 bytes"}},
      {"header longer than the file", raw<std::uint64_t>(1000000) + "{}", {"header length", "1000000"}},
      {"header above the limit", raw<std::uint64_t>(100000001) + "{}", {"at most 100000000", "100000001"}},
      {"header length near 2^64", raw<std::uint64_t>(~0ULL) + "{}", {"header length"}},
      {"empty header", safetensors_file(""), {"starts with {"}},
      {"header that starts with a space", safetensors_file(" {}"), {"starts with {"}},
      {"byte order mark", safetensors_file("\xEF\xBB\xBF{}"), {"starts with {"}},
      {"an array", safetensors_file("[]"), {"starts with {"}},
      {"not JSON", safetensors_file(R"({"w":)"), {"not JSON at byte"}},
      {"two documents", safetensors_file("{}{}"), {"not JSON at byte"}},
      {"invalid UTF-8", safetensors_file("{\"\xFF\":1}"), {"not JSON at byte"}},
      {"text after a NUL, which the parser would not see",
       safetensors_file(std::string("{}\0{", 4)),
       {"NUL"}},
      {"a tensor that is no object", safetensors_file(R"({"w":3})"), {"\"w\"", "an object", "3"}},
      {"unknown dtype",
       safetensors_file(w + entry("Q4", "[1]", "[0,4]") + "}", four),
       {"\"w\"", "dtype", "\"Q4\""}},
      {"dtype of another type",
       safetensors_file(R"({"w":{"dtype":7}})"),
       {"\"w\"", "dtype", "a string", "7"}},
      {"missing shape",
       safetensors_file(R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", four),
       {"\"w\"", "missing"}},
      {"unknown key", safetensors_file(R"({"w":{"strides":[1]}})"), {"\"w\"", "unknown key", "strides"}},
      {"key twice in an entry",
       safetensors_file(R"({"w":{"dtype":"F32","dtype":"F32"}})"),
       {"\"w\"", "twice"}},
      // B27: the parser keeps one of them and a tensor is lost.
      {"tensor twice",
       safetensors_file(w + entry("F32", "[1]", "[0,4]") + R"(,"w":)" + entry("F32", "[1]", "[4,8]") + "}",
                        eight),
       {"\"w\"", "twice"}},
      {"metadata twice",
       safetensors_file(R"({"__metadata__":{},"__metadata__":{}})"),
       {"__metadata__", "twice"}},
      {"metadata that is no text",
       safetensors_file(R"({"__metadata__":{"a":1}})"),
       {"__metadata__", "\"a\"", "a string"}},
      {"metadata within metadata",
       safetensors_file(R"({"__metadata__":{"a":{}}})"),
       {"__metadata__", "a string"}},
      {"negative dimension",
       safetensors_file(w + entry("F32", "[-1]", "[0,4]") + "}", four),
       {"\"w\"", "shape", "-1"}},
      {"fractional dimension",
       safetensors_file(w + entry("F32", "[1.0]", "[0,4]") + "}", four),
       {"\"w\"", "shape", "1.0"}},
      {"dimension past 2^63",
       safetensors_file(w + entry("F32", "[18446744073709551615]", "[0,4]") + "}", four),
       {"shape", "2^63"}},
      {"shape within shape",
       safetensors_file(w + entry("F32", "[[1]]", "[0,4]") + "}", four),
       {"\"w\"", "shape"}},
      {"shape of text",
       safetensors_file(w + entry("F32", "[\"1\"]", "[0,4]") + "}", four),
       {"\"w\"", "shape"}},
      {"three offsets",
       safetensors_file(w + entry("F32", "[1]", "[0,4,8]") + "}", four),
       {"data_offsets", "two numbers", "3"}},
      {"end before begin",
       safetensors_file(w + entry("F32", "[1]", "[4,0]") + "}", four),
       {"\"w\"", "[4,0]"}},
      {"end past the file",
       safetensors_file(w + entry("F32", "[2]", "[0,8]") + "}", four),
       {"\"w\"", "4 bytes", "[0,8]"}},
      {"hole before the first tensor",
       safetensors_file(w + entry("F32", "[1]", "[4,8]") + "}", eight),
       {"\"w\"", "hole"}},
      {"overlap",
       safetensors_file(w + entry("F32", "[1]", "[0,4]") + R"(,"v":)" + entry("F32", "[1]", "[2,6]") + "}",
                        eight),
       {"\"v\"", "overlap"}},
      {"hole between",
       safetensors_file(w + entry("U8", "[1]", "[0,1]") + R"(,"v":)" + entry("U8", "[1]", "[2,3]") + "}",
                        "abc"),
       {"\"v\"", "hole"}},
      {"bytes against shape",
       safetensors_file(w + entry("F32", "[3]", "[0,8]") + "}", eight),
       {"\"w\"", "12 bytes", "8"}},
      {"trailing bytes",
       safetensors_file(w + entry("F32", "[1]", "[0,4]") + "}", eight),
       {"the file's end", "4 bytes", "8"}},
      {"trailing bytes and no tensor", safetensors_file("{}", "x"), {"the file's end"}},
      {"product overflow",
       safetensors_file(w + entry("F32", "[4611686018427387904,4]", "[0,0]") + "}"),
       {"\"w\"", "2^63"}},
      {"overflow before a zero",
       safetensors_file(w + entry("F32", "[4611686018427387904,4,0]", "[0,0]") + "}"),
       {"2^63"}},
      {"overflow of the bits",
       safetensors_file(w + entry("F64", "[4611686018427387904]", "[0,0]") + "}"),
       {"bits"}},
      // S17: an F4 shape counts values; a row starts at a byte.
      {"odd F4 row",
       safetensors_file(w + entry("F4", "[2,3]", "[0,3]") + "}", "abc"),
       {"\"w\"", "F4", "even"}},
      {"half a byte of F4", safetensors_file(w + entry("F4", "[]", "[0,0]") + "}"), {"\"w\"", "whole bytes"}},
      {"F6 that ends inside a byte",
       safetensors_file(w + entry("F6_E2M3", "[3]", "[0,3]") + "}", "abc"),
       {"\"w\"", "whole bytes", "18"}},
  };
  for (const Refused& c : cases) {
    SCOPED_TRACE(c.why);
    const std::string line = input_error([&] { parse(c.bytes); });
    expect_line(line, c.parts);
    expect_line(line, {"bad safetensors file: x.safetensors: "});
  }
}

TEST(Safetensors, EveryLegalHeaderIsRead) {
  const std::vector<std::pair<const char*, std::string>> cases = {
      {"no tensor", safetensors_file("{}")},
      {"metadata only", safetensors_file(R"({"__metadata__":{"format":"pt"}})")},
      {"padded header", safetensors_file("{}      ")},
      {"a scalar", safetensors_file(R"({"w":)" + entry("F32", "[]", "[0,4]") + "}", "abcd")},
      {"an empty dimension", safetensors_file(R"({"w":)" + entry("F32", "[0,4]", "[0,0]") + "}")},
      {"zero before what would overflow",
       safetensors_file(R"({"w":)" + entry("F32", "[0,4611686018427387904,4]", "[0,0]") + "}")},
      {"header order is not buffer order",
       safetensors_file(
           R"({"b":)" + entry("U8", "[1]", "[1,2]") + R"(,"a":)" + entry("U8", "[1]", "[0,1]") + "}", "ab")},
  };
  for (const auto& [why, bytes] : cases) {
    SCOPED_TRACE(why);
    EXPECT_EQ(input_error([&, &b = bytes] { parse(b); }), "");
  }
}

TEST(Safetensors, TensorsComeByOffsetWithTheirBytes) {
  const std::string bytes = safetensors_file({{"second", "U8", {3}, "abc"},
                                              {"a.misaligned", "F32", {1}, raw(1.5F)},
                                              {"f4", "F4", {1, 4}, "\x12\x34"}});
  const SafetensorsFile file = parse(bytes);
  ASSERT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.tensors()[0].name, "second");
  const SafetensorsEntry* entry = file.find("a.misaligned");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->dtype, "F32");
  float value = 0;
  std::memcpy(&value, entry->data, sizeof value);  // three bytes in: no float lies there
  EXPECT_EQ(value, 1.5F);
  EXPECT_EQ(file.find("f4")->bytes, 2);
  EXPECT_EQ(file.find("f4")->shape, (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(file.find("absent"), nullptr);
}

TEST(Safetensors, EveryTypeHasItsSize) {
  const std::vector<std::pair<const char*, int>> bits = {
      {"BOOL", 8},        {"U8", 8},          {"I8", 8},    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
      {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F4", 4},    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16},
      {"U16", 16},        {"F16", 16},        {"BF16", 16}, {"I32", 32},    {"U32", 32},    {"F32", 32},
      {"I64", 64},        {"U64", 64},        {"F64", 64},  {"C64", 64}};
  for (const auto& [dtype, size] : bits) {
    SCOPED_TRACE(dtype);
    const std::string right(static_cast<std::size_t>(size), 'x');  // 8 values
    const std::string file = safetensors_file({{"w", dtype, {8}, right}});
    EXPECT_EQ(input_error([&] { parse(file); }), "");
    const std::string wrong = safetensors_file({{"w", dtype, {8}, right + "x"}});
    EXPECT_NE(input_error([&] { parse(wrong); }), "");
  }
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string bytes = safetensors_file({{"a", "F32", {2}, "abcdefgh"}, {"b", "U8", {1}, "x"}});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    EXPECT_NE(input_error([&] { parse(cut); }), "") << size;
  }
}

TEST(Safetensors, AFileOnDiskIsTheSame) {
  const auto dir = fresh_dir("safetensors");
  const std::string bytes = safetensors_file({{"a", "U8", {3}, "abc"}});
  write_file(dir / "a.safetensors", bytes);
  const SafetensorsFile file = SafetensorsFile::open(dir / "a.safetensors");
  EXPECT_EQ(file.bytes().size(), bytes.size());
  ASSERT_NE(file.find("a"), nullptr);
  file.release(file.find("a")->data, 3);
  EXPECT_EQ(static_cast<char>(file.find("a")->data[2]), 'c');
  expect_line(input_error([&] { SafetensorsFile::open(dir / "none.safetensors"); }), {"none.safetensors"});
}

}  // namespace
}  // namespace quantmap::testing
