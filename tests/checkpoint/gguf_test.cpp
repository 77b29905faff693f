#include "checkpoint/gguf.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "checkpoint/expect_error.hpp"
#include "checkpoint/make_files.hpp"
#include "support/paths.hpp"

namespace quantmap::testing {
namespace {

GgufFile parse(const std::string& bytes) { return GgufFile::parse(as_span(bytes), "x.gguf"); }

// A file with one F32 vector of three, changed by `edit` before it is written.
std::string file_with(const std::function<void(GgufWriter&)>& edit) {
  GgufWriter gguf;
  gguf.string("general.architecture", "llama");
  edit(gguf);
  return gguf.file();
}

const std::string kThree = raw_array(std::vector<float>{1, 2, 3});

TEST(Gguf, WhatCannotBeTrustedIsRefusedInOneLine) {
  struct Case {
    const char* why;
    std::string bytes;
    std::vector<std::string> parts;
  };
  const auto good = [](GgufWriter& g) { g.tensor("w", 0, {3}, kThree); };
  const auto version = [&](std::uint32_t value) {
    return file_with([&](GgufWriter& g) {
      g.version = value;
      good(g);
    });
  };
  const auto tensor = [](std::uint32_t type, const std::vector<std::int64_t>& shape,
                         const std::string& bytes) {
    return file_with([&](GgufWriter& g) { g.tensor("w", type, shape, bytes); });
  };
  const auto pair = [](std::uint32_t type, const std::string& value) {
    return file_with([&](GgufWriter& g) { g.pair("k", type, value); });
  };
  const auto alignment = [&](std::uint32_t type, const std::string& value) {
    return file_with([&](GgufWriter& g) { g.pair("general.alignment", type, value); });
  };
  const std::string right = file_with(good);
  const std::vector<Case> cases = {
      {"empty", "", {"magic"}},
      {"wrong magic", "GGUX" + right.substr(4), {"magic", "\"GGUF\"", "\"GGUX\""}},
      {"version 1", version(1), {"version", "2 or 3", "1"}},
      {"version 0", version(0), {"version", "0"}},
      {"version 4", version(4), {"version", "4"}},
      {"big-endian version 3 (B31)",
       version(0x03000000),
       {"byte order", "little-endian", "big-endian, version 3"}},
      {"more tensors than the file can hold",
       file_with([&](GgufWriter& g) {
         good(g);
         g.tensor_count = 1ULL << 60;
       }),
       {"tensor count", std::to_string(1ULL << 60)}},
      {"more pairs than the file can hold",
       file_with([&](GgufWriter& g) {
         good(g);
         g.pair_count = ~0ULL;
       }),
       {"key count"}},
      {"one tensor more",
       file_with([&](GgufWriter& g) {
         good(g);
         ++g.tensor_count;
       }),
       {"tensor"}},
      {"one tensor less",
       file_with([&](GgufWriter& g) {
         good(g);
         g.tensor("v", 0, {3}, kThree);
         --g.tensor_count;
       }),
       {"the file's end"}},
      {"one pair less",
       file_with([&](GgufWriter& g) {
         g.u32("a", 1);
         good(g);
         --g.pair_count;
       }),
       {""}},
      {"an empty key", file_with([](GgufWriter& g) { g.u32("", 1); }), {"key 2 of 2", "1 to 65535"}},
      {"a key twice",
       file_with([](GgufWriter& g) {
         g.u32("k", 1);
         g.u32("k", 1);
       }),
       {"\"k\"", "twice"}},
      {"unknown value type", pair(13, "xxxx"), {"\"k\"", "value type", "13"}},
      {"a string past the end", pair(8, raw<std::uint64_t>(1ULL << 62)), {"\"k\"", "string"}},
      {"a bool of 2", pair(7, "\2"), {"\"k\"", "bool", "0 or 1", "2"}},
      {"an array of bools of 2",
       pair(9, raw<std::uint32_t>(7) + raw<std::uint64_t>(2) + "\1\2"),
       {"\"k\"", "bool", "2"}},
      {"an array of arrays",
       pair(9, raw<std::uint32_t>(9) + raw<std::uint64_t>(0)),
       {"\"k\"", "array of arrays"}},
      {"an array of an unknown type",
       pair(9, raw<std::uint32_t>(99) + raw<std::uint64_t>(0)),
       {"\"k\"", "99"}},
      {"an array past the end",
       pair(9, raw<std::uint32_t>(4) + raw<std::uint64_t>(1ULL << 62)),
       {"\"k\"", "array"}},
      {"strings past the end",
       pair(9, raw<std::uint32_t>(8) + raw<std::uint64_t>(1ULL << 61)),
       {"\"k\"", "array length"}},
      {"alignment 0", alignment(4, raw<std::uint32_t>(0)), {"general.alignment", "multiple of 8", "0"}},
      {"alignment 12", alignment(4, raw<std::uint32_t>(12)), {"general.alignment", "12"}},
      {"alignment -32", alignment(5, raw<std::int32_t>(-32)), {"general.alignment", "-32"}},
      {"alignment of a float", alignment(6, raw(32.0F)), {"general.alignment", "an integer", "float32"}},
      {"alignment of text",
       alignment(8, GgufWriter::text("32")),
       {"general.alignment", "an integer", "\"32\""}},
      {"a tensor twice",
       file_with([&](GgufWriter& g) {
         good(g);
         good(g);
       }),
       {"\"w\"", "twice"}},
      {"a long name",
       file_with([](GgufWriter& g) { g.tensor(std::string(65, 'n'), 0, {3}, kThree); }),
       {"64 bytes", "65"}},
      {"five dimensions", tensor(0, {1, 1, 1, 1, 3}, kThree), {"\"w\"", "at most 4", "5"}},
      {"a dimension past 2^63", tensor(0, {-1}, kThree), {"\"w\"", "2^63"}},
      {"product overflow", tensor(0, {1LL << 62, 4}, kThree), {"\"w\"", "2^63 values"}},
      {"overflow of the bytes", tensor(0, {1LL << 62}, kThree), {"\"w\"", "2^63 bytes"}},
      {"row that is no whole block",
       tensor(2, {2, 24}, std::string(27, 'x')),
       {"\"w\"", "multiple of 32", "24"}},
      // B21: the product divides by 256, the row does not.
      {"row of 576 in Q3_K",
       tensor(11, {4, 576}, std::string(990, 'x')),
       {"\"w\"", "multiple of 256", "Q3_K", "576"}},
      {"data past the end", tensor(0, {300}, kThree), {"\"w\"", "data", "1200 bytes"}},
      {"truncated data", right.substr(0, right.size() - 24), {"\"w\"", "data"}},
      {"trailing bytes", right + "x", {"the file's end"}},
      {"offset with a gap",
       file_with([](GgufWriter& g) { g.tensor_at("w", 0, {3}, kThree, 32); }),
       {"\"w\"", "offset", "32"}},
      {"offset inside the padding",
       file_with([](GgufWriter& g) { g.tensor_at("w", 0, {3}, kThree, 4); }),
       {"\"w\"", "offset"}},
      {"offset near 2^64",
       file_with([](GgufWriter& g) { g.tensor_at("w", 0, {3}, kThree, ~31ULL); }),
       {"\"w\"", "offset"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    const std::string line = input_error([&] { parse(c.bytes); });
    expect_line(line, c.parts);
    expect_line(line, {"bad GGUF file: x.gguf: "});
  }
  for (const std::uint32_t removed : {4U, 5U, 31U, 32U, 33U, 36U, 37U, 38U, 1000U, 0xFFFFFFFFU}) {
    SCOPED_TRACE(removed);
    expect_line(input_error([&] { parse(tensor(removed, {32}, std::string(32, 'x'))); }),
                {"\"w\"", "type", std::to_string(removed)});
  }
}

TEST(Gguf, EveryTruncationIsRefused) {
  GgufWriter gguf;
  gguf.string("general.architecture", "llama");
  gguf.strings("tokens", {"a", "bc"});
  gguf.tensor("w", 0, {3}, kThree);
  const std::string bytes = gguf.file();
  const std::size_t data_end = bytes.size() - 20;  // the last padding may be missing
  for (std::size_t size = 0; size < data_end; ++size) {
    const std::string cut = bytes.substr(0, size);
    EXPECT_NE(input_error([&] { parse(cut); }), "") << size;
  }
  EXPECT_EQ(input_error([&] { parse(bytes.substr(0, data_end)); }), "");
}

TEST(Gguf, ValuesComeInEveryTypeThatCanHoldThem) {
  GgufWriter gguf;
  gguf.pair("u8", 0, raw<std::uint8_t>(200));
  gguf.pair("i8", 1, raw<std::int8_t>(-7));
  gguf.pair("u16", 2, raw<std::uint16_t>(60000));
  gguf.pair("i16", 3, raw<std::int16_t>(-300));
  gguf.pair("u32", 4, raw<std::uint32_t>(4000000000U));
  gguf.pair("i32", 5, raw<std::int32_t>(-5));
  gguf.pair("u64", 10, raw<std::uint64_t>(1ULL << 40));
  gguf.pair("big", 10, raw<std::uint64_t>(1ULL << 63));
  gguf.pair("i64", 11, raw<std::int64_t>(-(1LL << 40)));
  gguf.f32("f32", 0.5F);
  gguf.pair("f64", 12, raw(0.1));
  gguf.boolean("yes", true);
  gguf.string("text", std::string_view("va\0lue", 6));  // a NUL is a byte like any other
  gguf.strings("strings", {"", "a", "two words"});
  gguf.array("ints", 1, 2, raw<std::int8_t>(-1) + raw<std::int8_t>(5));
  gguf.array("floats", 6, 2, raw(1.5F) + raw(-2.0F));
  gguf.array("doubles", 12, 1, raw(0.25));
  gguf.array("bools", 7, 2, std::string("\1\0", 2));
  gguf.array("none", 8, 0, "");
  const std::string bytes = gguf.file();
  const GgufFile file = parse(bytes);

  const std::vector<std::pair<const char*, std::int64_t>> integers = {
      {"u8", 200},         {"i8", -7},  {"u16", 60000},     {"i16", -300},
      {"u32", 4000000000}, {"i32", -5}, {"u64", 1LL << 40}, {"i64", -(1LL << 40)}};
  for (const auto& [key, value] : integers) {
    EXPECT_EQ(file.integer(key), value) << key;
    EXPECT_EQ(file.number(key), static_cast<double>(value)) << key;
  }
  EXPECT_EQ(file.number("f32"), 0.5);
  EXPECT_EQ(file.number("f64"), 0.1);
  EXPECT_EQ(file.boolean("yes"), true);
  EXPECT_EQ(file.string("text"), std::string_view("va\0lue", 6));
  EXPECT_EQ(file.strings("strings"), (std::vector<std::string_view>{"", "a", "two words"}));
  EXPECT_EQ(file.integers("ints"), (std::vector<std::int64_t>{-1, 5}));
  EXPECT_EQ(file.floats("floats"), (std::vector<float>{1.5F, -2.0F}));
  EXPECT_EQ(file.floats("doubles"), (std::vector<float>{0.25F}));
  EXPECT_EQ(file.booleans("bools"), (std::vector<bool>{true, false}));
  EXPECT_TRUE(file.strings("none").empty());
  EXPECT_TRUE(file.integers("none").empty());
  EXPECT_TRUE(file.is_array("none"));
  EXPECT_FALSE(file.is_array("u8"));
  EXPECT_FALSE(file.is_array("absent"));
  EXPECT_EQ(file.keys().size(), 19U);
  EXPECT_EQ(file.keys()[0], "u8");
  EXPECT_FALSE(file.has("absent"));
  EXPECT_EQ(file.integer("absent"), std::nullopt);
  EXPECT_EQ(file.string("absent"), std::nullopt);
  EXPECT_EQ(file.number("absent"), std::nullopt);
  EXPECT_EQ(file.boolean("absent"), std::nullopt);

  // Another type: one line with file, key, expected and found.
  expect_line(input_error([&] { file.integer("f32"); }), {"x.gguf", "\"f32\"", "an integer", "float32"});
  expect_line(input_error([&] { file.integer("yes"); }), {"\"yes\"", "an integer", "bool"});
  expect_line(input_error([&] { file.integer("big"); }), {"\"big\"", "below 2^63"});
  expect_line(input_error([&] { file.string("u8"); }), {"\"u8\"", "a string", "uint8 200"});
  expect_line(input_error([&] { file.number("text"); }), {"\"text\"", "a number", "\"va\\x00lue\""});
  expect_line(input_error([&] { file.boolean("u8"); }), {"\"u8\"", "a bool"});
  expect_line(input_error([&] { file.strings("ints"); }), {"\"ints\"", "an array of strings", "2 int8"});
  expect_line(input_error([&] { file.strings("absent"); }), {"\"absent\"", "no such key"});
  expect_line(input_error([&] { file.floats("ints"); }), {"\"ints\"", "an array of floats"});
  expect_line(input_error([&] { file.integers("floats"); }), {"\"floats\"", "an array of integers"});
  expect_line(input_error([&] { file.booleans("text"); }), {"\"text\"", "an array of bools"});
}

// B31: data start at the next multiple of the alignment, whatever integer type holds it, power of two or not.
TEST(Gguf, DataStartAtTheNextMultipleOfTheAlignment) {
  struct Case {
    std::uint32_t alignment, type;
    std::size_t header, start;
  };
  const std::vector<Case> cases = {
      {16, 4, 1000, 1008},  // a reader that falls back to 32 would take 1024
      {24, 4, 1000, 1008},  // a mask of 23 would give 1000
      {32, 10, 1000, 1024}, {32, 0, 1000, 1024},    {64, 2, 1024, 1024},
      {8, 5, 1001, 1008},   {4096, 11, 1000, 4096},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.alignment);
    GgufWriter gguf;
    gguf.alignment = c.alignment;
    const std::string wide = raw<std::uint64_t>(c.alignment);
    const std::size_t bytes = c.type == 0 ? 1 : c.type == 2 ? 2 : c.type < 10 ? 4 : 8;
    gguf.pair("general.alignment", c.type, wide.substr(0, bytes));
    GgufWriter sized = gguf;
    sized.string("pad", "");
    sized.tensor("v", 0, {3}, kThree);
    sized.tensor("w", 0, {3}, kThree);
    gguf.string("pad", std::string(c.header - sized.header().size(), 'p'));
    gguf.tensor("v", 0, {3}, kThree);
    gguf.tensor("w", 0, {3}, kThree);
    ASSERT_EQ(gguf.header().size(), c.header);
    const std::string file = gguf.file();
    const GgufFile parsed = parse(file);
    EXPECT_EQ(static_cast<std::size_t>(parsed.find("v")->data - parsed.bytes().data()), c.start);
    const std::size_t step = (12 + c.alignment - 1) / c.alignment * c.alignment;
    EXPECT_EQ(static_cast<std::size_t>(parsed.find("w")->data - parsed.bytes().data()), c.start + step);
  }
}

TEST(Gguf, VersionTwoIsReadAsThree) {
  const std::string bytes = file_with([](GgufWriter& g) {
    g.version = 2;
    g.tensor("w", 2, {2, 32}, std::string(36, 'x'));
    g.tensor("s", 0, {}, raw(2.0F));
  });
  const GgufFile file = parse(bytes);
  EXPECT_EQ(file.version(), 2U);
  ASSERT_EQ(file.tensors().size(), 2U);
  EXPECT_EQ(file.tensors()[0].type->name, "Q4_0");
  EXPECT_EQ(file.tensors()[0].shape, (std::vector<std::int64_t>{2, 32}));
  EXPECT_EQ(file.tensors()[0].bytes, 36);
  EXPECT_EQ(file.find("s")->bytes, 4);
  EXPECT_EQ(file.find("t"), nullptr);
}

}  // namespace
}  // namespace quantmap::testing
