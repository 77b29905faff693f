// Seeded mutations of good inputs: each is accepted with a spelling that reads back, or refused with one
// Error.
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.hpp"
#include "core/random.hpp"
#include "scheme/scheme.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

std::string mutated(std::string text, SplitMix64& random, std::string_view alphabet) {
  for (std::uint64_t edits = 1 + random.next() % 3; edits > 0; --edits) {
    const std::size_t at = text.empty() ? 0 : random.next() % (text.size() + 1);
    switch (random.next() % 4) {
      case 0:
        text.insert(at, 1, alphabet[random.next() % alphabet.size()]);
        break;
      case 1:
        text.erase(std::min(at, text.size()), 1 + random.next() % 4);
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(random.next());
        break;
      default: {  // a part repeated elsewhere
        const std::string part = text.substr(at, random.next() % 12);
        text.insert(random.next() % (text.size() + 1), part);
      }
    }
  }
  return text;
}

TEST(SchemeMutations, AreReadBackOrRefused) {
  const std::string_view seeds[] = {
      "W4A16+KVFP8",
      "w=int4:g128:asym:sf16,a=int8:token,k=int8:channel,v=fp8_e4m3:tensor:dynamic",
      "w=fp8_e4m3:b128x128,a=fp8_e4m3:g128,include=lm_head,ignore=/layers\\.(0|1)\\.|a{1,2}=\\/(?i)b/",
      "w=nvfp4:noglobal:4over6,a=mxfp4:rceil,kv=nf4",
  };
  SplitMix64 random(20240601);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = mutated(std::string(seeds[i % 4]), random, ":,=/\\+@*()[]{}|0123456789gbxwakv");
    try {
      const Scheme scheme = Scheme::parse(text);
      const Scheme again = Scheme::parse(scheme.spelling());
      ASSERT_EQ(again.spelling(), scheme.spelling()) << text;
      scheme.linear("model.layers.0.mlp.down_proj");
      ++accepted;
    } catch (const Error& error) {
      ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      ++refused;
    }
  }
  // The mutations reach both sides of the grammar.
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 10000);
}

TEST(RecipeMutations, AreUsedOrRefusedAsInput) {
  const auto path = testing::fresh_dir("recipe_mutations") / "recipe.json";
  const std::string seed =
      R"({"rules":[{"modules":"/mlp\\./","w":"nvfp4","a":"nvfp4"},{"modules":"*","w":"int8:g32"}],)"
      R"("kv":[{"layers":"0-3","kv":"bf16"},{"layers":"*","k":"fp8_e4m3:token"}],"include":["lm_head"],"ignore":["/x/"]})";
  const std::string recipe = std::string("@").append(path.string());
  SplitMix64 random(7);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 600; ++i) {
    std::ofstream(path, std::ios::binary) << mutated(seed, random, "{}[]\",:\\/*-0123456789");
    try {
      const Scheme scheme = Scheme::parse(recipe);
      scheme.linear("model.layers.0.mlp.down_proj");
      scheme.cache(2);
      ++accepted;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::input) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(accepted, 5);
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace quantmap
