#include <gtest/gtest.h>

#include <algorithm>

#include "refusal.hpp"
#include "scheme/quant_words.hpp"
#include "scheme/scheme.hpp"

namespace quantmap {
namespace {

using testing::expect_refused;

constexpr Role kRoles[] = {Role::weight, Role::activation, Role::kv};

struct Accepted {
  Role role;
  std::string_view text, full;
};

// The defaults of product.md ("Defaults that matter") and formats.md (the mapping of the ids), spelled out.
constexpr Accepted kAccepted[] = {
    {Role::weight, "bf16", "bf16"},
    {Role::activation, "fp16", "fp16"},
    {Role::weight, "int8", "int8:channel:full:sbf16"},
    {Role::weight, "int4:g128", "int4:g128:full:sbf16"},
    {Role::weight, "int4:asym:g128", "int4:g128:asym:sbf16"},  // words in any order
    {Role::weight, "int4:sf32:g128:narrow", "int4:g128:narrow:sf32"},
    {Role::weight, "int4:g128:asym:full",
     "int4:g128:asym:sbf16"},                             // an asymmetric code uses every code anyway
    {Role::weight, "INT4:G128", "int4:g128:full:sbf16"},  // either case
    {Role::weight, "int8:b128x64:sf16", "int8:b128x64:full:sf16"},
    {Role::weight, "int8:rtn", "int8:channel:full:sbf16"},  // what happens without a method
    {Role::weight, "int8:tensor", "int8:tensor:full:sbf16"},
    {Role::weight, "int4:g1048576", "int4:g1048576:full:sbf16"},  // the longest group; longer than any row
    {Role::weight, "fp8_e4m3", "fp8_e4m3:channel"},
    {Role::weight, "fp8_e4m3:b128x128", "fp8_e4m3:b128x128"},
    {Role::weight, "fp8_e5m2:tensor:sbf16", "fp8_e5m2:tensor:sbf16"},
    {Role::weight, "mxfp4", "mxfp4:floor"},
    {Role::weight, "mxfp8_e4m3:rceil", "mxfp8_e4m3:rceil"},
    {Role::weight, "nvfp4", "nvfp4"},
    {Role::weight, "nvfp4:4over6:noglobal", "nvfp4:noglobal:4over6"},
    {Role::weight, "nf4", "nf4"},
    {Role::weight, "nf4:nested", "nf4:nested"},
    {Role::weight, "bnb_fp4:nested", "bnb_fp4:nested"},
    {Role::weight, "int4:g128:mse", "int4:g128:full:sbf16:mse"},
    {Role::weight, "nvfp4:mse", "nvfp4:mse"},
    {Role::weight, "int3:g64", "int3:g64:full:sbf16"},
    {Role::weight, "fp4_e2m1:g32", "fp4_e2m1:g32"},
    {Role::weight, "mxint8", "mxint8:floor"},
    {Role::activation, "mxfp6_e3m2:even", "mxfp6_e3m2:even"},
    {Role::kv, "fp6_e2m3", "fp6_e2m3:tensor:dynamic"},  // scale 1.0 is a habit of FP8 caches
    {Role::kv, "int2:g32:asym", "int2:g32:asym:sf32"},
    {Role::activation, "int8", "int8:token:narrow:sf32"},
    {Role::activation, "int8:full", "int8:token:full:sf32"},
    {Role::activation, "int8:asym", "int8:token:asym:sf32"},
    {Role::activation, "int8:tensor", "int8:tensor:narrow:sf32:dynamic"},  // no `static`: over the window
    {Role::activation, "int8:token:dynamic", "int8:token:narrow:sf32"},  // of a row a scale is always dynamic
    {Role::activation, "fp8_e4m3", "fp8_e4m3:token"},
    {Role::activation, "fp8_e4m3:tensor", "fp8_e4m3:tensor:dynamic"},
    {Role::activation, "fp8_e4m3:g128", "fp8_e4m3:g128"},
    {Role::activation, "mxfp4:even", "mxfp4:even"},
    {Role::kv, "int8", "int8:tensor:narrow:sf32:dynamic"},
    {Role::kv, "int8:token", "int8:token:narrow:sf32"},
    {Role::kv, "int4:channel:asym", "int4:channel:asym:sf32"},
    {Role::kv, "int4:g32", "int4:g32:narrow:sf32"},
    {Role::kv, "fp8_e4m3", "fp8_e4m3:tensor"},  // scale 1.0
    {Role::kv, "fp8_e4m3:tensor:dynamic", "fp8_e4m3:tensor:dynamic"},
    {Role::kv, "fp8_e5m2:token", "fp8_e5m2:token"},
    {Role::kv, "nvfp4", "nvfp4"},
};

TEST(QuantSpec, DefaultsAreSpelledOut) {
  for (const Accepted& row : kAccepted)
    EXPECT_EQ(spelling(parse_quant_spec(row.text, row.role), row.role), row.full)
        << role_name(row.role) << " " << row.text;
}

TEST(QuantSpec, FieldsAreThoseOfTheWords) {
  QuantSpec wanted{.format = find_format("int4"),
                   .granularity = Granularity::group,
                   .group = 128,
                   .asymmetric = true,
                   .scale = ScaleType::f16};
  EXPECT_EQ(parse_quant_spec("int4:g128:asym:sf16", Role::weight), wanted);

  wanted = {.format = find_format("int8"),
            .granularity = Granularity::tensor,
            .range = IntegerRange::narrow,
            .source = ScaleSource::dynamic};
  EXPECT_EQ(parse_quant_spec("int8:tensor", Role::activation), wanted);
  EXPECT_EQ(parse_quant_spec("int8", Role::kv), wanted);

  wanted = {.format = find_format("int8"),
            .granularity = Granularity::row,
            .range = IntegerRange::narrow,
            .per_head = true};
  EXPECT_EQ(parse_quant_spec("int8:token", Role::kv), wanted);
  wanted.per_head = false;
  EXPECT_EQ(parse_quant_spec("int8", Role::activation), wanted);

  wanted = {
      .format = find_format("fp8_e4m3"), .granularity = Granularity::tensor, .source = ScaleSource::unit};
  EXPECT_EQ(parse_quant_spec("fp8_e4m3:tensor", Role::kv), wanted);
  wanted.source = ScaleSource::dynamic;
  EXPECT_EQ(parse_quant_spec("fp8_e4m3:tensor:dynamic", Role::kv), wanted);
  wanted.source = ScaleSource::values;
  EXPECT_EQ(parse_quant_spec("fp8_e4m3:tensor", Role::weight), wanted);

  wanted = {.format = find_format("int8"), .granularity = Granularity::column, .range = IntegerRange::narrow};
  EXPECT_EQ(parse_quant_spec("int8:channel", Role::kv), wanted);

  wanted = {
      .format = find_format("fp8_e4m3"), .granularity = Granularity::tile, .tile_rows = 64, .tile_cols = 128};
  EXPECT_EQ(parse_quant_spec("fp8_e4m3:b64x128", Role::weight), wanted);

  wanted = {.format = find_format("nvfp4"), .no_global = true, .four_over_six = true};
  EXPECT_EQ(parse_quant_spec("nvfp4:noglobal:4over6", Role::kv), wanted);

  wanted = {.format = find_format("mxfp4"), .rule = MxScaleRule::ceil};
  EXPECT_EQ(parse_quant_spec("mxfp4:ceil", Role::activation), wanted);

  wanted = {.format = find_format("nf4"), .nested = true};
  EXPECT_EQ(parse_quant_spec("nf4:nested", Role::weight), wanted);
}

TEST(QuantSpec, PerHeadRuleIsForEveryTokenCacheThatHasAScale) {
  for (const std::string_view text : {"int8:token", "int4:token", "fp8_e4m3:token", "fp8_e5m2:token"}) {
    EXPECT_TRUE(parse_quant_spec(text, Role::kv).per_head) << text;
    EXPECT_FALSE(parse_quant_spec(text, Role::activation).per_head) << text;
  }
  for (const std::string_view text :
       {"int8:tensor", "int8:channel", "int8:g32", "fp8_e4m3:tensor", "mxfp4", "bf16"})
    EXPECT_FALSE(parse_quant_spec(text, Role::kv).per_head) << text;
}

struct Refused {
  Role role;
  std::string_view text, part;
};

constexpr Refused kRefused[] = {
    // A word that means nothing there, by name, with what is allowed.
    {Role::weight, "int8:token",
     "weights \"int8:token\": \"token\" means nothing here (int8 for weights takes tensor | channel | gN | "
     "bRxC; asym; "
     "narrow | full; sf32 | sf16 | sbf16; rtn | mse)"},
    {Role::activation, "int8:channel",
     "\"channel\" means nothing here (int8 for activations takes tensor | token | gN; asym; narrow | full; "
     "sf32 | sf16 | sbf16; dynamic)"},
    {Role::activation, "int8:b128x128", "\"b128x128\" means nothing here"},
    {Role::kv, "fp8_e4m3:b2x2", "\"b2x2\" means nothing here"},
    {Role::weight, "mxfp4:g32",
     "\"g32\" means nothing here (mxfp4 for weights takes floor | ceil | rceil | even; rtn | mse)"},
    {Role::weight, "fp8_e4m3:narrow", "\"narrow\" means nothing here"},
    {Role::weight, "fp8_e4m3:asym", "\"asym\" means nothing here"},
    {Role::weight, "mxfp4:sbf16", "\"sbf16\" means nothing here"},
    {Role::weight, "nvfp4:nested", "\"nested\" means nothing here"},
    {Role::weight, "nvfp4:floor", "\"floor\" means nothing here"},
    {Role::weight, "mxfp4:noglobal", "\"noglobal\" means nothing here"},
    {Role::weight, "nf4:4over6", "\"4over6\" means nothing here"},
    {Role::weight, "nf4:g64", "\"g64\" means nothing here"},
    {Role::activation, "nf4:nested", "\"nested\" means nothing here"},
    {Role::weight, "q4_k:g32", "\"g32\" means nothing here (q4_k for weights takes rtn)"},
    {Role::kv, "q8_0:token", "\"token\" means nothing here (q8_0 for KV cache takes no words)"},
    {Role::weight, "bf16:sf32", "\"sf32\" means nothing here (bf16 for weights takes no words)"},
    {Role::weight, "int8:dynamic", "\"dynamic\" means nothing here"},
    {Role::activation, "int8:rtn", "\"rtn\" means nothing here"},
    {Role::kv, "fp8_e4m3:tensor:sf16", "\"sf16\" means nothing for the scale 1.0"},
    // Said twice, or against itself.
    {Role::weight, "int8:full:full", "\"full\" is given twice"},
    {Role::weight, "int8:full:narrow", "\"narrow\" contradicts \"full\""},
    {Role::weight, "int8:g32:channel", "\"channel\" contradicts \"g32\""},
    {Role::weight, "int8:g32:g64", "\"g64\" contradicts \"g32\""},
    {Role::weight, "int8:asym:narrow", "\"narrow\" contradicts \"asym\""},
    {Role::weight, "mxfp4:ceil:rceil", "\"rceil\" contradicts \"ceil\""},
    // Not built yet, by name.
    {Role::weight, "int4:g128:gptq", "\"gptq\" is not built yet"},
    {Role::weight, "int4:g128:awq", "\"awq\" is not built yet"},
    {Role::activation, "int4:mse", "\"mse\" means nothing here"},
    {Role::weight, "q4_k:mse", "\"mse\" means nothing here"},
    {Role::weight, "nf4:nested:mse", "\"mse\" contradicts \"nested\""},
    {Role::weight, "nvfp4:4over6:mse", "\"mse\" contradicts \"4over6\""},
    {Role::weight, "int4:mse:rtn", "\"rtn\" contradicts \"mse\""},
    {Role::activation, "fp8_e4m3:tensor:static", "\"static\" is not built yet"},
    {Role::kv, "fp8_e4m3:tensor:static", "\"static\" is not built yet"},
    {Role::weight, "iq2_s", "\"iq2_s\" is not built yet (built: bf16, fp16, int8"},
    // Ambiguous, by the formats meant.
    {Role::weight, "fp4", "\"fp4\" is ambiguous (fp4_e2m1, bnb_fp4)"},
    {Role::activation, "fp8:token", "\"fp8\" is ambiguous (fp8_e4m3, fp8_e5m2)"},
    {Role::weight, "mxint8:rceil",
     "\"rceil\" means nothing here (mxint8 for weights takes floor; rtn | mse)"},
    // Unknown.
    {Role::weight, "int7", "unknown format \"int7\" (known: bf16, fp16, int8"},
    {Role::weight, "int8:blue", "unknown word \"blue\" (int8 for weights takes"},
    {Role::weight, "int8:g", "unknown word \"g\""},
    {Role::weight, "int8:g-1", "unknown word \"g-1\""},
    {Role::weight, "int8 ", "unknown format \"int8 \""},
    {Role::weight, "int8:\x1b[31m", "unknown word \"\\x1B[31m\""},
    // Sizes.
    {Role::weight, "int8:g0", "size \"g0\" is not a whole number from 1 to 1048576"},
    {Role::weight, "int8:g1048577", "size \"g1048577\""},
    {Role::weight, "int8:g99999999999999999999", "size \"g99999999999999999999\""},  // beyond 64 bits
    {Role::weight, "int8:g1.5", "size \"g1.5\""},
    {Role::weight, "int8:g128x", "size \"g128x\""},
    {Role::weight, "int8:b128", "\"b128\" is not a tile"},
    {Role::weight, "int8:b128x", "size \"b128x\""},
    {Role::weight, "int8:b0x128", "size \"b0x128\""},
    {Role::weight, "int8:b1x2x3", "size \"b1x2x3\""},
    // Nothing where something belongs.
    {Role::weight, "", "weights \"\": the format is missing"},
    {Role::weight, ":g128", "the format is missing"},
    {Role::weight, "int8:", "an empty word"},
    {Role::weight, "int8::g128", "an empty word"},
};

TEST(QuantSpec, WhatMeansNothingIsRefusedByName) {
  for (const Refused& row : kRefused)
    expect_refused([&] { parse_quant_spec(row.text, row.role); }, ErrorKind::usage, std::string(row.part),
                   std::string(row.text));
}

std::optional<QuantSpec> accepted_spec(std::string_view text, Role role) {
  try {
    return parse_quant_spec(text, role);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Every combination of words, one of each slot or none: whatever is accepted has a spelling that reads back
// to the same spec and spells itself.
TEST(QuantSpec, EverySpellingReadsBackToItself) {
  const std::vector<std::vector<std::string>> slots{{"", "tensor", "channel", "token", "g1048576", "b1x7"},
                                                    {"", "asym"},
                                                    {"", "narrow", "full"},
                                                    {"", "floor", "rceil"},
                                                    {"", "sf32", "sf16", "sbf16"},
                                                    {"", "dynamic"},
                                                    {"", "noglobal"},
                                                    {"", "4over6"},
                                                    {"", "nested"}};
  std::size_t tried = 0, accepted = 0;
  for (const Role role : kRoles)
    for (const Format& format : formats()) {
      std::vector<std::size_t> at(slots.size(), 0);
      for (bool more = true; more;) {
        std::string text(format.id);
        int words = 0;
        for (std::size_t i = 0; i < slots.size(); ++i)
          if (at[i] != 0) {
            (text += ':') += slots[i][at[i]];
            ++words;
          }
        ++tried;
        std::optional<QuantSpec> spec;
        if (words <= 5) spec = accepted_spec(text, role);  // no format takes more
        if (spec) {
          ++accepted;
          const std::string full = spelling(*spec, role);
          ASSERT_EQ(parse_quant_spec(full, role), *spec) << text << " -> " << full;
          ASSERT_EQ(spelling(parse_quant_spec(full, role), role), full) << text;
        }
        more = false;
        for (std::size_t i = 0; i < slots.size() && !more; ++i) {
          at[i] = (at[i] + 1) % slots[i].size();
          more = at[i] != 0;
        }
      }
    }
  // 6 * 2 * 3 * 3 * 4 * 2^4 combinations of the words for each format and role.
  EXPECT_EQ(tried, 3 * formats().size() * 6 * 2 * 3 * 3 * 4 * 16);
  EXPECT_GT(accepted, 500U);
}

TEST(QuantSpec, OrderOfWordsDoesNotMatter) {
  std::vector<std::string> words{"asym", "full", "g64", "sf16"};
  const QuantSpec wanted = parse_quant_spec("int4:g64:asym:full:sf16", Role::weight);
  std::sort(words.begin(), words.end());
  int orders = 0;
  do {
    std::string text = "int4";
    for (const std::string& word : words) (text += ':') += word;
    EXPECT_EQ(parse_quant_spec(text, Role::weight), wanted) << text;
    ++orders;
  } while (std::next_permutation(words.begin(), words.end()));
  EXPECT_EQ(orders, 24);
}

// The error lines say what is allowed: then it must be.
TEST(QuantSpec, AllowedWordsAreAccepted) {
  for (const Role role : kRoles)
    for (const Format& format : formats()) {
      std::string list = allowed_words(format, role);
      if (list == "no words") continue;
      std::replace(list.begin(), list.end(), ';', '|');
      for (std::size_t begin = 0; begin < list.size();) {
        const std::size_t end = std::min(list.find('|', begin), list.size());
        std::string word = list.substr(begin, end - begin);
        std::erase(word, ' ');
        begin = end + 1;
        if (word == "gN") word = "g16";
        if (word == "bRxC") word = "b16x16";
        // A type for the scale 1.0 of an FP8 cache needs the scale to be found first.
        const bool unit = role == Role::kv && format.kind == FormatKind::minifloat && format.bits == 8 &&
                          word.starts_with("s");
        const std::string text = std::string(format.id) + ':' + word + (unit ? ":dynamic" : "");
        EXPECT_NO_THROW(parse_quant_spec(text, role)) << role_name(role) << " " << text;
      }
    }
}

}  // namespace
}  // namespace quantmap
