// Every quantization configuration of ../shared/data/configs named right, its ignored modules and rules
// listed; and what is half-known, contradictory or wrong: a warning each, the rest still there.
#include "map/quant_config/quant_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "map/configs.hpp"
#include "map/inspection.hpp"
#include "map/name_of_choices.hpp"

namespace quantmap {
namespace {

using testing::configs_dir;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::read_config_file;
using Json = nlohmann::json;

QuantConfig read(const Json& document) { return read_quant_config(document, "config.json"); }

struct Named {
  const char* file;
  const char* method;
  const char* name;
  std::size_t ignored, rules;
};

TEST(QuantConfigs, OfAnyFamilyAreNamedRight) {
  QUANTMAP_NEEDS(configs_dir());
  const Named cases[] = {
      {"Llama-2-13B-chat-GPTQ_config.json", "gptq", "W4A16", 0, 1},
      {"Llama-2-13B-chat-GPTQ_quantize_config.json", "gptq", "W4A16", 0, 1},
      {"Llama-4-Maverick-FP8-dynamic_config.json", "compressed-tensors", "FP8 W8A8", 0, 1},
      {"Qwen--Qwen3-32B-FP8-Static-PerTensor_config.json", "modelopt", "FP8 W8A8 + FP8 KV", 1, 1},
      {"Qwen--Qwen3-32B-FP8-Static-PerTensor_hf_quant_config.json", "modelopt", "FP8 W8A8 + FP8 KV", 1, 1},
      {"Qwen--Qwen3-32B-FP8_config.json", "fp8", "FP8 W8A8", 0, 1},
      {"ct-example-w8a8-naive.json", "compressed-tensors", "W8A8", 0, 1},
      {"deepseek-ai--DeepSeek-V3_config.json", "fp8", "FP8 W8A8", 0, 1},
      {"gen-ct-Qwen3-8B-FP8_DYNAMIC_config.json", "compressed-tensors", "FP8 W8A8", 1, 1},
      {"gen-ct-Qwen3-8B-FP8_static_kvfp8_config.json", "compressed-tensors", "FP8 W8A8 + FP8 KV", 1, 1},
      {"gen-ct-Qwen3-8B-NVFP4_config.json", "compressed-tensors", "NVFP4 W4A4", 1, 1},
      {"gen-ct-Qwen3-8B-W4A16_config.json", "compressed-tensors", "W4A16", 1, 1},
      {"gen-ct-Qwen3-8B-W8A8_int8_config.json", "compressed-tensors", "W8A8", 1, 1},
      {"gen-hf-Qwen3-8B-bnb-nf4_config.json", "bitsandbytes", "NF4 W4A16", 0, 1},
      {"moonshotai--Kimi-K2-Instruct_config.json", "fp8", "FP8 W8A8", 0, 1},
      {"moonshotai--Kimi-K2.5_config.json", "compressed-tensors", "W4A16", 4, 1},  // under text_config (B59)
      {"nvidia--DeepSeek-V3.1-NVFP4_config.json", "", "BF16", 0, 0},
      {"nvidia--DeepSeek-V3.1-NVFP4_hf_quant_config.json", "modelopt", "NVFP4 W4A4 + FP8 KV", 246, 1},
      {"nvidia--Gemma-4-31B-IT-NVFP4_config.json", "modelopt", "NVFP4 W4A4 + FP8 KV", 63, 1},
      {"nvidia--Gemma-4-31B-IT-NVFP4_hf_quant_config.json", "modelopt", "NVFP4 W4A4 + FP8 KV", 63, 1},
      {"nvidia--Llama-3.1-70B-Instruct-FP8_hf_quant_config.json", "modelopt", "FP8 W8A8 + FP8 KV", 1, 1},
      {"nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8_hf_quant_config.json", "modelopt", "FP8 W8A8 + FP8 KV",
       0, 1},
      {"nvidia--Qwen3.6-27B-NVFP4_config.json", "modelopt", "mixed (NVFP4 W4A16, FP8 W8A8) + FP8 KV", 2, 2},
      {"nvidia--Qwen3.6-27B-NVFP4_hf_quant_config.json", "modelopt", "mixed (NVFP4 W4A16, FP8 W8A8) + FP8 KV",
       2, 2},
      {"openai--gpt-oss-20b_config.json", "mxfp4", "MXFP4 W4A16", 4, 1},
      {"zephyr-7B-alpha-AWQ_excerpt_config.json", "awq", "W4A16", 0, 1},
  };
  for (const Named& c : cases) {
    SCOPED_TRACE(c.file);
    const QuantConfig config = read(read_config_file(std::string("quant/") + c.file));
    EXPECT_EQ(config.method, c.method);
    EXPECT_EQ(name_of(config), c.name);
    EXPECT_EQ(config.ignored.size(), c.ignored);
    EXPECT_EQ(config.groups.size(), c.rules);
    EXPECT_THAT(config.warnings, IsEmpty());
  }
  // None of the folder is left out.
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(configs_dir() / "quant"))
    files += entry.is_regular_file();
  EXPECT_EQ(files, std::size(cases));
}

TEST(QuantConfigs, RulesForEachLayerAreListed) {
  QUANTMAP_NEEDS(configs_dir());
  const QuantConfig config = read(read_config_file("quant/nvidia--Qwen3.6-27B-NVFP4_config.json"));
  const Json layers = read_config_file(
      "quant/nvidia--Qwen3.6-27B-NVFP4_config.json")["quantization_config"]["quantized_layers"];
  std::size_t listed = 0;
  for (const QuantGroup& group : config.groups) listed += group.targets.size();
  EXPECT_EQ(listed, layers.size());
  MapModule linear;
  linear.linear = true;
  for (const auto& [name, layer] : layers.items()) {
    const QuantGroup* group = group_of(config, linear, name);
    ASSERT_NE(group, nullptr) << name;
    EXPECT_EQ(group->weights->format, layer["quant_algo"] == "FP8" ? "fp8_e4m3" : "nvfp4") << name;
    EXPECT_EQ(group->activations.has_value(), layer["quant_algo"] == "FP8") << name;
  }
  EXPECT_EQ(group_of(config, linear, "mtp.layers.0.mlp.up_proj"), nullptr);
}

TEST(QuantConfigs, DetailsOfTheChoices) {
  QUANTMAP_NEEDS(configs_dir());
  const QuantConfig block = read(read_config_file("quant/deepseek-ai--DeepSeek-V3_config.json"));
  EXPECT_EQ(block.groups[0].weights->granularity, "block");
  EXPECT_EQ(block.groups[0].weights->block_rows, 128);
  EXPECT_EQ(block.groups[0].activations->group_size, 128);
  EXPECT_EQ(block.groups[0].activations->dynamic, "true");
  const QuantConfig fixed = read(read_config_file("quant/gen-ct-Qwen3-8B-FP8_static_kvfp8_config.json"));
  EXPECT_EQ(fixed.groups[0].activations->dynamic, "false");
  EXPECT_EQ(fixed.kv->granularity, "tensor");
  const QuantConfig nvfp4 = read(read_config_file("quant/gen-ct-Qwen3-8B-NVFP4_config.json"));
  EXPECT_EQ(nvfp4.groups[0].activations->dynamic, "local");
  EXPECT_EQ(nvfp4.groups[0].weights->group_size, 16);
  const QuantConfig int4 = read(read_config_file("quant/gen-ct-Qwen3-8B-W4A16_config.json"));
  EXPECT_EQ(int4.groups[0].weights->group_size, 128);
  EXPECT_EQ(int4.groups[0].weights->symmetric, true);
  EXPECT_FALSE(int4.groups[0].activations.has_value());
  const QuantConfig awq = read(read_config_file("quant/zephyr-7B-alpha-AWQ_excerpt_config.json"));
  EXPECT_EQ(awq.groups[0].weights->symmetric, false);
}

TEST(QuantConfigs, AKvOnlyCheckpointIsNeitherQuantizedWeightsNorNothing) {  // S23
  const Json modelopt = {{"quantization", {{"quant_algo", nullptr}, {"kv_cache_quant_algo", "FP8"}}}};
  const Json scheme = {
      {"quantization_config",
       {{"quant_method", "compressed-tensors"},
        {"config_groups", Json::object()},
        {"kv_cache_scheme",
         {{"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}, {"dynamic", false}}}}}};
  for (const Json& document : {modelopt, scheme}) {
    const QuantConfig config = read(document);
    EXPECT_EQ(name_of(config), "FP8 KV only");
    const Inspection inspection = inspect(document, config, nullptr, nullptr);
    EXPECT_FALSE(inspection.weights.has_value());
    EXPECT_FALSE(inspection.activations.has_value());
    ASSERT_TRUE(inspection.kv.has_value());
    EXPECT_EQ(inspection.kv->format, "fp8_e4m3");
  }
}

TEST(NameMatchers, AreThreeDifferentOnes) {  // B57
  std::vector<std::string> warnings;
  const NameMatcher names(NameRule::names, {"lm_head", "re:.*mlp.gate$"}, warnings);
  EXPECT_TRUE(names.matches("lm_head"));
  EXPECT_FALSE(names.matches("language_model.lm_head"));
  EXPECT_TRUE(names.matches("model.layers.0.mlp.gate"));
  EXPECT_FALSE(names.matches("model.layers.0.mlp.gate_proj"));
  const NameMatcher start(NameRule::names, {"re:mlp"}, warnings);  // re.match: at the start
  EXPECT_TRUE(start.matches("mlp.up_proj"));
  EXPECT_FALSE(start.matches("model.mlp.up_proj"));
  const NameMatcher classes(NameRule::names, {"Linear"}, warnings);
  EXPECT_TRUE(classes.matches("anything", "Linear"));
  EXPECT_FALSE(classes.matches("anything", "Embedding"));
  const NameMatcher substring(NameRule::substring, {"visual", "lm_head"}, warnings);
  EXPECT_TRUE(substring.matches("model.visual.blocks.0.attn"));
  EXPECT_TRUE(substring.matches("language_model.lm_head"));
  const NameMatcher glob(NameRule::glob, {"*lm_head*", "model.layers.0.self_attn*", "mtp"}, warnings);
  EXPECT_TRUE(glob.matches("language_model.lm_head"));
  EXPECT_TRUE(glob.matches("model.layers.0.self_attn.q_proj"));
  EXPECT_FALSE(glob.matches("model.layers.10.self_attn.q_proj"));
  EXPECT_FALSE(glob.matches("model.mtp"));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(NameMatchers, SayWhetherNumbersMatter) {
  std::vector<std::string> warnings;
  const auto numbers = [&](NameRule rule, const char* text) {
    return NameMatcher(rule, {text}, warnings).tells_numbers_apart();
  };
  EXPECT_FALSE(numbers(NameRule::names, "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"));
  EXPECT_FALSE(numbers(NameRule::glob, "*lm_head*"));
  EXPECT_TRUE(numbers(NameRule::names, "re:.*experts\\.\\d+\\.up"));
  EXPECT_TRUE(numbers(NameRule::names, "re:.*experts.[13].up"));
  EXPECT_TRUE(numbers(NameRule::glob, "model.layers.61*"));
  EXPECT_TRUE(numbers(NameRule::substring, "layers.0."));
}

TEST(QuantConfigs, WhatIsWrongIsAWarningAndTheRestIsListed) {
  struct Case {
    const char* why;
    Json config;
    const char* warning;
    const char* name;
  };
  const Json group = {
      {"targets", {"Linear"}},
      {"weights",
       {{"num_bits", 4}, {"type", "int"}, {"strategy", "group"}, {"group_size", 128}, {"symmetric", true}}}};
  const auto ct = [&](const Json& more) {
    Json config = {{"quant_method", "compressed-tensors"},
                   {"format", "pack-quantized"},
                   {"config_groups", {{"group_0", group}}}};
    config.update(more);
    return config;
  };
  const Case cases[] = {
      {"a method that no reader knows",
       {{"quant_method", "aqlm"}, {"bits", 2}},
       "unknown quant_method",
       "unknown (aqlm)"},
      {"no method and no keys that tell", {{"alpha", 1}}, "no quant_method", "unknown (unknown)"},
      {"a bad regex (B57)", ct({{"ignore", {"re:(unclosed", "lm_head"}}}), "does not compile", "W4A16"},
      {"a packing that cannot hold the format", ct({{"format", "nvfp4-pack-quantized"}}), "which holds nvfp4",
       "W4A16"},
      {"a value of the wrong type", ct({{"ignore", 7}}), "not a list of names", "W4A16"},
      {"an unknown strategy",
       ct({{"config_groups",
            {{"g",
              {{"targets", {"Linear"}},
               {"weights", {{"num_bits", 8}, {"type", "int"}, {"strategy", "spiral"}}}}}}},
           {"format", "int-quantized"}}),
       "strategy is spiral", "W8A16"},
      {"an algorithm that is not known",
       {{"quant_method", "modelopt"}, {"quant_algo", "FP3"}, {"kv_cache_quant_algo", "FP8"}},
       "which is not known",
       "FP8 KV only"},
      {"a cache that is not known",
       {{"quant_method", "modelopt"}, {"quant_algo", "FP8"}, {"kv_cache_quant_algo", "FP5"}},
       "FP5",
       "FP8 W8A8"},
      {"mixed precision without its layers",
       {{"quant_method", "modelopt"}, {"quant_algo", "MIXED_PRECISION"}},
       "without quantized_layers",
       "W16A16"},
      {"two words for one choice that differ",
       {{"quant_method", "modelopt"},
        {"quant_algo", "NVFP4"},
        {"config_groups", {{"g", {{"weights", {{"num_bits", 8}}}}}}}},
       "quant_algo counts",
       "NVFP4 W4A4"},
      {"bits that cannot be",
       {{"quant_method", "gptq"}, {"bits", 40}, {"group_size", 128}},
       "not 2 to 8",
       "W16A16"},
      {"both or neither",
       {{"quant_method", "bitsandbytes"}, {"load_in_4bit", false}, {"load_in_8bit", false}},
       "neither load_in_4bit nor load_in_8bit",
       "W16A16"},
      {"a scheme of activations that is not known",
       {{"quant_method", "fp8"}, {"activation_scheme", "maybe"}},
       "not dynamic or static",
       "FP8 W8A8"},
      {"a dialect's keys under another's name", ct({{"quant_algo", "FP8"}}), "quant_algo is modelopt's",
       "W4A16"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    const QuantConfig config = read({{"model_type", "llama"}, {"quantization_config", c.config}});
    EXPECT_THAT(config.warnings, Contains(HasSubstr(c.warning)));
    EXPECT_EQ(name_of(config), c.name);
  }
}

TEST(QuantConfigs, ABadRegexIgnoresNothingAndTheOthersStillDo) {
  const Json config = {{"quant_method", "compressed-tensors"},
                       {"config_groups",
                        {{"g",
                          {{"targets", {"Linear"}},
                           {"weights", {{"num_bits", 8}, {"type", "int"}, {"strategy", "channel"}}}}}}},
                       {"ignore", {"re:(", "lm_head"}}};
  const QuantConfig read_config = read({{"quantization_config", config}});
  MapModule head;
  head.part = Part::lm_head;
  EXPECT_EQ(group_of(read_config, head, "lm_head"), nullptr);
  EXPECT_NE(group_of(read_config, MapModule{}, "model.layers.0.mlp.up_proj"), nullptr);
}

TEST(QuantConfigs, BothPlacesAreLookedAt) {  // B59
  const Json four = {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 128}};
  const Json eight = {{"quant_method", "gptq"}, {"bits", 8}, {"group_size", 128}};
  EXPECT_EQ(name_of(read({{"text_config", {{"quantization_config", four}}}})), "W4A16");
  const QuantConfig both =
      read({{"quantization_config", four}, {"text_config", {{"quantization_config", eight}}}});
  EXPECT_EQ(name_of(both), "W4A16");
  EXPECT_THAT(both.warnings, Contains(HasSubstr("differ")));
}

TEST(QuantConfigs, FilesSideBySideThatDifferAreNamed) {
  const auto dir = testing::fresh_dir("map_two_files");
  write_file_atomically(
      dir / "hf_quant_config.json",
      R"({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}})");
  const Json config = {{"model_type", "llama"},
                       {"quantization_config",
                        {{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}, {"ignore", {"lm_head"}}}}};
  const QuantConfig read_config = read_quant_config_of_folder(dir, config);
  EXPECT_EQ(name_of(read_config), "NVFP4 W4A4");
  EXPECT_THAT(read_config.warnings, Contains(HasSubstr("hf_quant_config.json differ")));
}

}  // namespace
}  // namespace quantmap
