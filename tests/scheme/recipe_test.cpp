#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/mapped_file.hpp"
#include "refusal.hpp"
#include "scheme/scheme.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

using ::testing::ElementsAre;
using testing::expect_refused;
using testing::fresh_dir;

constexpr std::string_view kUp = "model.layers.3.mlp.up_proj", kQuery = "model.layers.3.self_attn.q_proj";

std::string recipe(const std::filesystem::path& path) { return std::string("@").append(path.string()); }

class Recipe : public ::testing::Test {
 protected:
  // Each recipe of a test is its own file.
  Scheme parse(std::string_view json) {
    const auto path = dir_ / (std::to_string(count_++) + ".json");
    write_file_atomically(path, json);
    return Scheme::parse(recipe(path));
  }

  const std::filesystem::path dir_ =
      fresh_dir(::testing::UnitTest::GetInstance()->current_test_info()->name());
  int count_ = 0;
};

TEST_F(Recipe, FirstRuleThatMatchesWins) {
  const Scheme scheme = parse(R"({
    "description": "FP8 attention beside NVFP4 MLPs",
    "rules": [
      {"modules": "model.layers.0.mlp.up_proj", "w": "bf16", "a": "int8"},
      {"modules": "/mlp\\./", "w": "nvfp4", "a": "nvfp4"},
      {"modules": "/self_attn/", "w": "fp8_e4m3:channel", "a": "fp8_e4m3:token"},
      {"modules": "*", "w": "int8"}]})");
  const auto weight = [&](std::string_view module) {
    return spelling(scheme.linear(module).weight, Role::weight);
  };
  EXPECT_EQ(weight("model.layers.0.mlp.up_proj"), "bf16");
  EXPECT_EQ(spelling(scheme.linear("model.layers.0.mlp.up_proj").activation, Role::activation),
            "int8:token:narrow:sf32");
  EXPECT_EQ(weight(kUp), "nvfp4");
  EXPECT_EQ(weight(kQuery), "fp8_e4m3:channel");
  EXPECT_EQ(weight("model.layers.3.cross_attn.q_proj"), "int8:channel:full:sbf16");
  EXPECT_EQ(weight("lm_head"), "bf16");
  EXPECT_EQ(scheme.weights(), "mixed");
  EXPECT_EQ(scheme.activations(), "mixed");
  EXPECT_EQ(scheme.kv(), "bf16");
}

TEST_F(Recipe, CachesGoByLayer) {
  const Scheme scheme = parse(R"({"kv": [
      {"layers": "0-3,30", "kv": "bf16"},
      {"layers": "7", "k": "int8:token"},
      {"layers": "*", "k": "fp8_e4m3:token", "v": "int8:token"}]})");
  const auto kv = [&](int layer) {
    return spelling(scheme.cache(layer).key, Role::kv) + " " + spelling(scheme.cache(layer).value, Role::kv);
  };
  for (const int layer : {0, 3, 30}) EXPECT_EQ(kv(layer), "bf16 bf16") << layer;
  for (const int layer : {4, 29, 31}) EXPECT_EQ(kv(layer), "fp8_e4m3:token int8:token:narrow:sf32") << layer;
  EXPECT_EQ(kv(7), "int8:token:narrow:sf32 bf16");
  EXPECT_EQ(scheme.kv(), "mixed");
  EXPECT_EQ(scheme.weights(), "bf16");
}

TEST_F(Recipe, OneRuleOverEverythingDoesWhatThePlainSchemeDoes) {
  const Scheme plain = Scheme::parse("w=int4:g32,a=int8,k=int8:token,v=fp8_e4m3");
  const Scheme recipe = parse(R"({"rules": [{"modules": "*", "w": "int4:g32", "a": "int8"}],
                                  "kv": [{"layers": "*", "k": "int8:token", "v": "fp8_e4m3"}]})");
  for (const std::string_view module :
       {kUp, kQuery, std::string_view("lm_head"), std::string_view("model.norm")})
    EXPECT_EQ(recipe.linear(module), plain.linear(module)) << module;
  for (const int layer : {0, 5}) EXPECT_EQ(recipe.cache(layer), plain.cache(layer));
  EXPECT_EQ(recipe.weights(), plain.weights());
  EXPECT_EQ(recipe.activations(), plain.activations());
  EXPECT_EQ(recipe.kv(), plain.kv());
}

TEST_F(Recipe, RuleOverNothingLeavesEverythingButIsARowOfItsOwn) {
  const Scheme scheme = parse(R"({"rules": [{"modules": "/nothing/", "w": "int4"}]})");
  EXPECT_EQ(scheme.linear(kUp), Scheme::parse("BF16").linear(kUp));
  EXPECT_EQ(scheme.cache(0), Scheme::parse("BF16").cache(0));
  EXPECT_FALSE(scheme.is_reference());  // its row shows KL 0
  EXPECT_THAT(scheme.unused_patterns({std::string(kUp)}), ElementsAre("/nothing/"));
}

TEST_F(Recipe, IncludeIgnoreAndExactNamesReachOutsideTheLayers) {
  const Scheme scheme =
      parse(R"({"rules": [{"modules": "*", "w": "int8"}], "include": ["lm_head"], "ignore": ["/down/"]})");
  EXPECT_FALSE(scheme.linear("lm_head").weight.is_reference());
  EXPECT_TRUE(scheme.linear("model.layers.0.mlp.down_proj").weight.is_reference());
  const Scheme by_name = parse(R"({"rules": [{"modules": "lm_head", "w": "int8"}]})");
  EXPECT_FALSE(by_name.linear("lm_head").weight.is_reference());
  const Scheme by_regex = parse(R"({"rules": [{"modules": "/./", "w": "int8"}]})");
  EXPECT_TRUE(by_regex.linear("lm_head").weight.is_reference());
}

TEST_F(Recipe, IdentityIsTheDigestOfTheResolvedRules) {
  const Scheme one = parse(R"({"rules": [{"modules": "*", "w": "int8"}], "ignore": ["/b/", "/a/"]})");
  // Defaults spelled out, keys and spaces otherwise, patterns in another order, a description: the same
  // rules.
  const Scheme same = parse(R"({"description": "x", "ignore": ["/a/", "/b/", "/a/"], "kv": [],
                                "rules": [{"a": "bf16", "w": "int8:channel:full:sbf16", "modules": "*"}]})");
  const Scheme other = parse(R"({"rules": [{"modules": "*", "w": "int8:sf32"}], "ignore": ["/b/", "/a/"]})");
  EXPECT_EQ(one.spelling(), same.spelling());
  EXPECT_NE(one.spelling(), other.spelling());
  EXPECT_EQ(one.spelling().size(), 17U);
  EXPECT_EQ(one.spelling()[0], '@');
  // Stored in databases: printf '%s'
  // '{"ignore":[],"include":[],"kv":[],"rules":[{"a":"bf16","modules":"*","w":"nvfp4"}]}'
  //   | sha256sum | cut -c1-16
  EXPECT_EQ(parse(R"({"rules": [{"modules": "*", "w": "nvfp4"}]})").spelling(), "@1b7c97c598bd1fef");
}

TEST_F(Recipe, SameRulesAreOneSchemeOfTheList) {
  write_file_atomically(dir_ / "a.json", R"({"rules": [{"modules": "*", "w": "int8"}]})");
  write_file_atomically(dir_ / "b.json", R"({"rules": [{"modules": "*", "w": "INT8"}]})");
  const auto schemes = parse_schemes({recipe(dir_ / "a.json").append(" W8A16"), recipe(dir_ / "b.json")});
  ASSERT_EQ(schemes.size(), 2U);  // the plain scheme keeps its own row beside the recipe
  EXPECT_EQ(schemes[1].given(), "W8A16");
}

TEST_F(Recipe, ExampleOfTheDocumentationIsUsable) {
  const Scheme scheme =
      Scheme::parse(recipe(testing::source_dir() / "datasets/recipes/fp8-attention-nvfp4-mlp.json"));
  EXPECT_EQ(spelling(scheme.linear(kUp).weight, Role::weight), "nvfp4");
  EXPECT_EQ(spelling(scheme.linear(kQuery).weight, Role::weight), "fp8_e4m3:channel");
  EXPECT_TRUE(scheme.cache(0).key.is_reference());
  EXPECT_EQ(spelling(scheme.cache(9).key, Role::kv), "fp8_e4m3:token");
}

TEST_F(Recipe, BadFilesAreRefusedWithThePlace) {
  const std::pair<std::string_view, std::string_view> kBad[] = {
      {"", "not JSON: near byte"},
      {"{", "not JSON: near byte 2"},
      {"[]", "recipe: expected an object, found array"},
      {"{}", "recipe: neither \"rules\" nor \"kv\" is given"},
      {R"({"rules": {}})", "rules: expected an array, found object"},
      {R"({"rules": [], "rule": []})",
       "recipe: unknown key \"rule\" (known: description, rules, kv, include, ignore)"},
      {R"({"rules": [3]})", "rules[0]: expected an object, found number"},
      {R"({"rules": [{"w": "int8"}]})", "rules[0]: \"modules\" is missing"},
      {R"({"rules": [{"modules": "*"}]})", "rules[0]: neither \"w\" nor \"a\" is given"},
      {R"({"rules": [{"modules": "*", "w": "int8"}, {"modules": 3, "w": "int8"}]})",
       "rules[1].modules: expected a string, found number"},
      {R"({"rules": [{"modules": "*", "w": "int9"}]})", "rules[0].w: weights \"int9\": unknown format"},
      {R"({"rules": [{"modules": "*", "a": "int8:channel"}]})",
       "rules[0].a: activations \"int8:channel\": \"channel\" means"},
      {R"({"rules": [{"modules": "*", "w": null}]})", "rules[0].w: expected a string, found null"},
      {R"({"rules": [{"modules": "*", "kv": "int8"}]})",
       "rules[0]: unknown key \"kv\" (known: modules, w, a)"},
      {R"({"rules": [{"modules": "/(/", "w": "int8"}]})", "rules[0].modules: regex \"/(/\": at position 1"},
      {R"({"rules": [{"modules": "model.embed_tokens", "w": "int8"}]})",
       "rules[0].modules: module \"model.embed_tokens\""},
      {R"({"rules": [{"modules": "*", "w": "int8", "w": "int4"}]})", "key \"w\": given twice"},
      {R"({"kv": [{"layers": "0-3"}]})", "kv[0]: none of \"kv\", \"k\", \"v\" is given"},
      {R"({"kv": [{"kv": "int8"}]})", "kv[0]: \"layers\" is missing"},
      {R"({"kv": [{"layers": "3-0", "kv": "int8"}]})", "kv[0].layers: \"3-0\" runs backwards"},
      {R"({"kv": [{"layers": "-1", "kv": "int8"}]})", "kv[0].layers: \"-1\" is not a list of layers"},
      {R"({"kv": [{"layers": "0,", "kv": "int8"}]})", "kv[0].layers: \"0,\" is not a list of layers"},
      {R"({"kv": [{"layers": "99999999999", "kv": "int8"}]})", "is not a list of layers"},
      {R"({"kv": [{"layers": "*", "kv": "int8", "k": "int8"}]})",
       "kv[0]: \"kv\" says what \"k\" and \"v\" say again"},
      {R"({"kv": [{"layers": "*", "v": "int8:static"}]})",
       "kv[0].v: KV cache \"int8:static\": \"static\" is not built yet"},
      {R"({"rules": [], "include": "lm_head"})", "include: expected an array, found string"},
      {R"({"rules": [], "include": ["embed_tokens"]})", "include: module \"embed_tokens\": embeddings"},
      {R"({"rules": [], "ignore": ["*gate*"]})", "ignore[0]: module \"*gate*\""},
      {R"({"rules": [], "description": 1})", "description: expected a string, found number"},
      {"{\"rules\": [], \"description\": \"\xff\"}", "not JSON"},
  };
  for (const auto& [json, part] : kBad)
    expect_refused([&, j = json] { parse(j); }, ErrorKind::input, std::string(part), std::string(json));
  expect_refused([&] { parse("{}"); }, ErrorKind::input, "cannot use recipe: " + dir_.string(),
                 "the file's name");
  expect_refused([&] { Scheme::parse(recipe(dir_ / "absent.json")); }, ErrorKind::input, "absent.json",
                 "absent");
  expect_refused([&] { Scheme::parse(recipe(dir_)); }, ErrorKind::input, "not a regular file", "a folder");
}

}  // namespace
}  // namespace quantmap
