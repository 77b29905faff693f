#include "scheme/scheme.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "refusal.hpp"

namespace quantmap {
namespace {

using ::testing::ElementsAre;
using testing::expect_refused;
using ::testing::IsEmpty;

constexpr std::string_view kDown = "model.layers.3.mlp.down_proj";

struct Accepted {
  std::string_view text, full;
};

// Every short name of product.md, and the rest of the grammar, with the full spelling that is printed and
// stored.
constexpr Accepted kAccepted[] = {
    {"BF16", "w=bf16,a=bf16,kv=bf16"},
    {"W8A16", "w=int8:channel:full:sbf16,a=bf16,kv=bf16"},
    {"W4A16", "w=int4:g128:full:sbf16,a=bf16,kv=bf16"},
    {"W4A16_G32", "w=int4:g32:full:sbf16,a=bf16,kv=bf16"},
    {"W8A8", "w=int8:channel:full:sbf16,a=int8:token:narrow:sf32,kv=bf16"},
    {"W4A8", "w=int4:g128:full:sbf16,a=int8:token:narrow:sf32,kv=bf16"},
    {"W4A16_ASYM", "w=int4:g128:asym:sbf16,a=bf16,kv=bf16"},
    {"FP8_DYNAMIC", "w=fp8_e4m3:channel,a=fp8_e4m3:token,kv=bf16"},
    {"FP8_BLOCK", "w=fp8_e4m3:b128x128,a=fp8_e4m3:g128,kv=bf16"},
    {"NVFP4", "w=nvfp4,a=nvfp4,kv=bf16"},
    {"NVFP4A16", "w=nvfp4,a=bf16,kv=bf16"},
    {"MXFP4", "w=mxfp4:floor,a=mxfp4:floor,kv=bf16"},
    {"MXFP4A16", "w=mxfp4:floor,a=bf16,kv=bf16"},
    {"MXFP8", "w=mxfp8_e4m3:floor,a=mxfp8_e4m3:floor,kv=bf16"},
    {"NF4", "w=nf4,a=bf16,kv=bf16"},
    {"BF16+KVFP8", "w=bf16,a=bf16,kv=fp8_e4m3:tensor"},
    {"BF16+KVINT8", "w=bf16,a=bf16,kv=int8:token:narrow:sf32"},
    {"W4A16+KVFP8", "w=int4:g128:full:sbf16,a=bf16,kv=fp8_e4m3:tensor"},
    {"NVFP4+KVINT8", "w=nvfp4,a=nvfp4,kv=int8:token:narrow:sf32"},
    {"w4a16+kvfp8", "w=int4:g128:full:sbf16,a=bf16,kv=fp8_e4m3:tensor"},  // either case
    {"w=int8", "w=int8:channel:full:sbf16,a=bf16,kv=bf16"},               // left out: bf16
    {"a=int8", "w=bf16,a=int8:token:narrow:sf32,kv=bf16"},
    {"kv=int8", "w=bf16,a=bf16,kv=int8:tensor:narrow:sf32:dynamic"},
    {"kv=fp8_e4m3", "w=bf16,a=bf16,kv=fp8_e4m3:tensor"},
    {"k=int8:channel,v=int8:token", "w=bf16,a=bf16,k=int8:channel:narrow:sf32,v=int8:token:narrow:sf32"},
    {"k=int8:token", "w=bf16,a=bf16,k=int8:token:narrow:sf32,v=bf16"},
    {"v=mxfp4,k=mxfp4", "w=bf16,a=bf16,kv=mxfp4:floor"},  // not apart
    {"kv=nvfp4,a=mxfp4,w=nf4", "w=nf4,a=mxfp4:floor,kv=nvfp4"},
    {"W=INT8", "w=int8:channel:full:sbf16,a=bf16,kv=bf16"},
    {"w=int8,include=lm_head", "w=int8:channel:full:sbf16,a=bf16,kv=bf16,include=lm_head"},
    {"W4A16,include=lm_head", "w=int4:g128:full:sbf16,a=bf16,kv=bf16,include=lm_head"},
    {"W4A16,a=int8,kv=int8:token",
     "w=int4:g128:full:sbf16,a=int8:token:narrow:sf32,kv=int8:token:narrow:sf32"},
    {"ignore=/b,=/,w=int8,ignore=/a/,include=/lm_head/,ignore=/a/",  // sorted, each once
     "w=int8:channel:full:sbf16,a=bf16,kv=bf16,include=/lm_head/,ignore=/a/,ignore=/b,=/"},
};

TEST(Scheme, FullSpellingsAreExact) {
  for (const Accepted& row : kAccepted) {
    const Scheme scheme = Scheme::parse(row.text);
    EXPECT_EQ(scheme.spelling(), row.full) << row.text;
    EXPECT_EQ(scheme.given(), row.text);
  }
}

TEST(Scheme, FullSpellingReadsBackToTheSameScheme) {
  for (const Accepted& row : kAccepted) {
    const Scheme scheme = Scheme::parse(row.text), again = Scheme::parse(scheme.spelling());
    EXPECT_EQ(again, scheme) << row.text;
    EXPECT_EQ(again.linear(kDown), scheme.linear(kDown)) << row.text;
    EXPECT_EQ(again.cache(3), scheme.cache(3)) << row.text;
  }
}

TEST(Scheme, EveryShortNameOfTheTableExpandsAsItSays) {
  EXPECT_EQ(short_names().size(), 32U);
  for (const ShortName& name : short_names()) {
    if (name.name == "FP8") continue;  // static, below
    EXPECT_EQ(Scheme::parse(name.name), Scheme::parse(name.expansion)) << name.name;
    const Scheme with_cache = Scheme::parse(std::string(name.name) + "+KVFP8");
    EXPECT_EQ(with_cache.weights(), Scheme::parse(name.name).weights());
    EXPECT_EQ(with_cache.activations(), Scheme::parse(name.name).activations());
    EXPECT_EQ(with_cache.kv(), "fp8_e4m3:tensor");
  }
}

TEST(Scheme, ColumnsOfTheTableAreThePartsOfTheSpelling) {
  const Scheme scheme = Scheme::parse("w=int4:g32,a=int8,k=int8:token,v=fp8_e5m2");
  EXPECT_EQ(scheme.weights(), "int4:g32:full:sbf16");
  EXPECT_EQ(scheme.activations(), "int8:token:narrow:sf32");
  EXPECT_EQ(scheme.kv(), "k=int8:token:narrow:sf32,v=fp8_e5m2:tensor");
  EXPECT_EQ(Scheme::parse("W4A16").kv(), "bf16");
}

struct Refused {
  std::string_view text, part;
};

constexpr Refused kRefused[] = {
    {"", "scheme \"\": it is empty"},
    {"FP8", "\"static\" is not built yet"},  // its activation scale comes from calibration
    {"fp8+KVFP8", "\"static\" is not built yet"},
    {"W5A16", "scheme \"W5A16\": unknown short name (known: BF16, W8A16, W4A16,"},
    {"W4A16+KVFP4", "unknown short name"},
    {"+KVFP8", "unknown short name"},
    {"W4A16+KVFP8+KVFP8", "unknown short name"},
    {"int8", "unknown short name"},  // a format is no scheme: which of the three?
    {"IQ2_S", "\"IQ2_S\" is not built yet"},
    {"IQ2_S+KVFP8", "\"IQ2_S\" is not built yet"},
    {"w=iq2_s", "\"iq2_s\" is not built yet"},
    {"Q4_K_M", "unknown short name"},  // a mixture of types, by layer
    {"w=int8:token", "scheme \"w=int8:token\": weights \"int8:token\": \"token\" means nothing here"},
    {"w=mxfp4:g32", "\"g32\" means nothing here"},
    {"a=int8:channel", "activations \"int8:channel\": \"channel\" means nothing here"},
    {"kv=int8:b1x1", "KV cache \"int8:b1x1\": \"b1x1\" means nothing here"},
    {"w=int8,smooth=0.5", "\"smooth=\" is not built yet"},
    {"w=int8,rotate=hadamard", "\"rotate=\" is not built yet"},
    {"w=int8:gptq", "\"gptq\" is not built yet"},
    {"w=int8,w=int8", "w= says again what was said before it"},
    {"W8A16,w=int4", "w= says again"},
    {"kv=int8,k=int8", "k= says again"},
    {"v=int8,kv=int8", "kv= says again"},
    {"W8A8+KVFP8,kv=int8", "kv= says again"},
    {"x=int8", "unknown item \"x=\" (items: w=, a=, kv= or k= and v=, include=, ignore=)"},
    {"=int8", "unknown item \"=\""},
    {"w=", "weights \"\": the format is missing"},
    {"w=int8,", "nothing between two commas"},
    {",w=int8", "nothing between two commas"},
    {"w=int8,,a=int8", "nothing between two commas"},
    {"w=int8,W8A8", "\"W8A8\" is not key=value"},
    {"w=int8,g128", "\"g128\" is not key=value"},
    {"w=int8, a=int8", "unknown item \" a=\""},
    {"w=int8,include=", "module pattern: it is empty"},
    {"w=int8,include=embed_tokens", "embeddings are looked up, not multiplied"},
    {"w=int8,include=model.embed_tokens", "embeddings are looked up, not multiplied"},
    {"w=int8,include=/embed/", "embeddings are looked up, not multiplied"},
    {"w=int8,ignore=/(/", "regex \"/(/\": at position 1"},
    {"w=int8,ignore=/a", "the closing / is missing"},
    {"w=int8,ignore=*gate*", "\"*\" is in no module path"},
    {"w=int8\n", "control characters"},
    {"w=int8\xff", "invalid UTF-8"},
    {"@", "the name of the recipe file is missing"},
};

TEST(Scheme, WhatCannotBeMeantIsRefusedByName) {
  for (const Refused& row : kRefused)
    expect_refused([&] { Scheme::parse(row.text); }, ErrorKind::usage, std::string(row.part),
                   std::string(row.text));
}

TEST(Scheme, QuantizesTheLinearsOfTheDecoderLayersAndNothingElse) {
  const Scheme scheme = Scheme::parse("W8A8");
  const Scheme reference = Scheme::parse("BF16");
  const std::map<std::string_view, bool> quantized{
      {"model.layers.0.self_attn.q_proj", true},
      {"model.layers.31.mlp.down_proj", true},
      {"model.layers.7.mlp.gate_proj", true},
      {"model.layers.7.mlp.gate", false},  // a router
      {"model.layers.7.mlp.shared_expert_gate", false},
      {"lm_head", false},
      {"model.embed_tokens", false},
      {"model.norm", false},
      {"model.layers", false},
      {"model.layers.", false},
      {"model.layers.3", false},
      {"model.layers.3.", false},
      {"model.layers.x.mlp.up_proj", false},
      {"mymodel.layers.3.mlp.up_proj", false},
      {"", false},
  };
  for (const auto& [module, is] : quantized) {
    EXPECT_EQ(scheme.linear(module) == reference.linear(module), !is) << module;
    EXPECT_TRUE(reference.linear(module).weight.is_reference());
  }
}

TEST(Scheme, IncludeAddsAndIgnoreTakesAwayAndIgnoreWins) {
  const auto touches = [](std::string_view text, std::string_view module) {
    return !Scheme::parse(text).linear(module).weight.is_reference();
  };
  EXPECT_TRUE(touches("w=int8,include=lm_head", "lm_head"));
  EXPECT_TRUE(touches("w=int8,include=/head$/", "lm_head"));
  EXPECT_TRUE(touches("w=int8,include=*", "lm_head"));
  EXPECT_FALSE(touches("w=int8,include=lm_head", "language_model.lm_head"));
  EXPECT_TRUE(touches("w=int8,include=model.layers.7.mlp.gate", "model.layers.7.mlp.gate"));
  EXPECT_TRUE(touches("w=int8,include=lm_head", kDown));
  EXPECT_FALSE(touches("w=int8,ignore=/down_proj/", kDown));
  EXPECT_TRUE(touches("w=int8,ignore=/down_proj/", "model.layers.3.mlp.up_proj"));
  EXPECT_FALSE(touches("w=int8,ignore=model.layers.3.mlp.down_proj", kDown));
  EXPECT_FALSE(touches("w=int8,ignore=/x/,ignore=/layers\\.(1|3)\\./", kDown));
  EXPECT_FALSE(touches("w=int8,include=lm_head,ignore=/head/", "lm_head"));
  EXPECT_FALSE(touches("w=int8,ignore=*", kDown));
}

TEST(Scheme, PlainCacheIsTheSameInEveryLayer) {
  const Scheme scheme = Scheme::parse("k=int8:token");
  for (const int layer : {0, 1, 79}) {
    EXPECT_EQ(spelling(scheme.cache(layer).key, Role::kv), "int8:token:narrow:sf32");
    EXPECT_TRUE(scheme.cache(layer).value.is_reference());
  }
}

TEST(Scheme, ReferenceIsRecognisedHoweverSpelled) {
  for (const std::string_view text : {"BF16", "bf16", "w=bf16", "a=bf16,w=bf16,kv=bf16", "k=bf16,v=bf16",
                                      "BF16,ignore=/x/", "w=bf16,include=lm_head"})
    EXPECT_TRUE(Scheme::parse(text).is_reference()) << text;
  for (const std::string_view text : {"BF16+KVFP8", "w=fp16", "v=int8", "a=int8", "W8A16,ignore=*"})
    EXPECT_FALSE(Scheme::parse(text).is_reference()) << text;
}

TEST(Scheme, PatternsThatNameNothingAreReported) {
  const std::vector<std::string> modules{"model.layers.0.mlp.down_proj", "lm_head"};
  const Scheme scheme = Scheme::parse("w=int8,include=lmhead,include=lm_head,ignore=/gate/,ignore=/down/");
  EXPECT_THAT(scheme.unused_patterns(modules), ElementsAre("include=lmhead", "ignore=/gate/"));
  EXPECT_THAT(Scheme::parse("W8A8").unused_patterns(modules), IsEmpty());
}

std::vector<std::string> given(const std::vector<Scheme>& schemes) {
  std::vector<std::string> texts;
  for (const Scheme& scheme : schemes) texts.push_back(scheme.given());
  return texts;
}

TEST(ParseSchemes, SplitsAtSpaceOutsideRegexes) {
  EXPECT_THAT(given(parse_schemes({"W8A8  W4A16\t\n NF4 ", "w=int8,ignore=/a b/ MXFP4", ""})),
              ElementsAre("W8A8", "W4A16", "NF4", "w=int8,ignore=/a b/", "MXFP4"));
  EXPECT_THAT(parse_schemes({}), IsEmpty());
  EXPECT_THAT(parse_schemes({"", "  "}), IsEmpty());
}

TEST(ParseSchemes, DropsRepetitionsAndTheReferenceAndKeepsTheOrder) {
  EXPECT_THAT(given(parse_schemes({"NF4", "BF16", "W8A16 w=int8 w=int8:channel:full", "w=bf16,a=bf16,kv=bf16",
                                   "NF4,ignore=/x/", "nf4", "w=int8:sf32"})),
              ElementsAre("NF4", "W8A16", "NF4,ignore=/x/", "w=int8:sf32"));
}

TEST(ParseSchemes, OneBadSchemeRefusesAll) {
  expect_refused([] { parse_schemes({"W8A8 W9A9"}); }, ErrorKind::usage, "\"W9A9\"", "W8A8 W9A9");
}

}  // namespace
}  // namespace quantmap
