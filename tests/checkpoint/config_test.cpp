#include "checkpoint/config.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/expect_error.hpp"
#include "checkpoint/make_files.hpp"
#include "support/paths.hpp"

namespace quantmap::testing {
namespace {

using nlohmann::json;

// The least that a config of a family needs.
json base(const std::string& family) {
  return {{"model_type", family},   {"hidden_size", 64},        {"intermediate_size", 96},
          {"num_hidden_layers", 3}, {"num_attention_heads", 4}, {"vocab_size", 256}};
}

ModelConfig parse(const std::string& family, const json& patch) {
  json config = base(family);
  config.update(patch);  // a null stays a null, as in the file
  return parse_config(config, "config.json");
}

TEST(Config, WhatIsNotSaidIsWhatTransformersAssumes) {
  const json kv4 = {{"num_key_value_heads", 4}};
  const ModelConfig llama = parse("llama", json::object());
  EXPECT_EQ(llama.kv_heads, 4);
  EXPECT_EQ(llama.head_dim, 16);
  EXPECT_EQ(llama.max_position, 2048);
  EXPECT_EQ(llama.rms_norm_eps, 1e-6);
  EXPECT_EQ(llama.rope.kind, RopeKind::standard);
  EXPECT_EQ(llama.rope.theta, 10000.0);
  EXPECT_FALSE(llama.tied_embeddings);
  EXPECT_EQ(llama.window, (std::vector<std::int64_t>{0, 0, 0}));

  // The class has 8 and 32 there; null means as many as heads.
  EXPECT_EQ(parse("mistral", {{"num_attention_heads", 32}}).kv_heads, 8);
  EXPECT_EQ(parse("qwen2", {{"num_attention_heads", 32}}).kv_heads, 32);
  EXPECT_EQ(parse("mistral", {{"num_attention_heads", 32}, {"num_key_value_heads", nullptr}}).kv_heads, 32);
  expect_line(input_error([] { parse("qwen3", json::object()); }),
              {"num_key_value_heads", "divisor of num_attention_heads 4", "32"});

  EXPECT_EQ(parse("mistral", kv4).max_position, 131072);
  EXPECT_EQ(parse("mistral", kv4).window, (std::vector<std::int64_t>{4096, 4096, 4096}));
  EXPECT_EQ(parse("qwen2", kv4).max_position, 32768);
  EXPECT_EQ(parse("qwen2", kv4).window, (std::vector<std::int64_t>{0, 0, 0}));
  EXPECT_EQ(parse("qwen3", kv4).head_dim, 128);
}

TEST(Config, HeadDimIsTheConfigsOwnInEveryFamilyAndNullIsDerived) {
  for (const char* family : {"llama", "mistral", "qwen2", "qwen3"}) {
    SCOPED_TRACE(family);
    const json kv = {{"num_key_value_heads", 2}};
    json own = kv;
    own["head_dim"] = 20;
    EXPECT_EQ(parse(family, own).head_dim, 20);
    own["head_dim"] = nullptr;
    EXPECT_EQ(parse(family, own).head_dim, 16);
  }
  // S19, Mistral Nemo: 5120 wide, 32 heads of 128.
  const ModelConfig nemo = parse("mistral", {{"hidden_size", 5120},
                                             {"num_attention_heads", 32},
                                             {"head_dim", 128},
                                             {"num_key_value_heads", 8},
                                             {"sliding_window", nullptr}});
  EXPECT_EQ(nemo.head_dim, 128);
  EXPECT_EQ(nemo.window[0], 0);
  expect_line(input_error([] {
                parse("llama", {{"hidden_size", 66}});
              }),
              {"head_dim", "not a multiple", "66 / 4"});
}

TEST(Config, BiasesAreTheFamilysAndItsFlags) {
  struct Case {
    const char* family;
    json patch;
    bool qkv, o, mlp;
  };
  const std::vector<Case> cases = {
      {"llama", json::object(), false, false, false},
      {"llama", {{"attention_bias", true}}, true, true, false},
      {"llama", {{"mlp_bias", true}}, false, false, true},
      {"llama", {{"attention_bias", true}, {"mlp_bias", true}}, true, true, true},
      {"mistral",
       {{"attention_bias", true}, {"mlp_bias", true}},
       false,
       false,
       false},                                        // no such flags there
      {"qwen2", json::object(), true, false, false},  // B47: without a flag
      {"qwen2", {{"attention_bias", false}}, true, false, false},
      {"qwen3", json::object(), false, false, false},
      {"qwen3", {{"attention_bias", true}}, true, true, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.family) + " " + c.patch.dump());
    json patch = c.patch;
    patch["num_key_value_heads"] = 4;
    const ModelConfig config = parse(c.family, patch);
    EXPECT_EQ(config.q_bias, c.qkv);
    EXPECT_EQ(config.k_bias, c.qkv);
    EXPECT_EQ(config.v_bias, c.qkv);
    EXPECT_EQ(config.o_bias, c.o);
    EXPECT_EQ(config.mlp_bias, c.mlp);
    EXPECT_EQ(config.qk_norm, std::string(c.family) == "qwen3");
  }
}

TEST(Config, WindowsAreTheLayerTypesElseTheFamilysKeys) {
  const json mixed = {"full_attention", "full_attention", "sliding_attention"};
  const json full = {"full_attention", "full_attention", "full_attention"};
  using Window = std::vector<std::int64_t>;
  struct Case {
    const char* family;
    json patch;
    Window window;
  };
  const std::vector<Case> cases = {
      {"mistral", {{"sliding_window", 16}}, {16, 16, 16}},
      {"mistral", {{"sliding_window", nullptr}}, {0, 0, 0}},
      {"mistral", {{"sliding_window", 16}, {"layer_types", mixed}}, {0, 0, 16}},
      {"qwen2", {{"sliding_window", 12}, {"use_sliding_window", true}, {"max_window_layers", 2}}, {0, 0, 12}},
      {"qwen2",
       {{"sliding_window", 12}, {"use_sliding_window", true}},
       {0, 0, 0}},  // first 28 layers are full
      {"qwen2",
       {{"sliding_window", 12}, {"use_sliding_window", true}, {"max_window_layers", 0}},
       {12, 12, 12}},
      {"qwen2", {{"sliding_window", 12}, {"use_sliding_window", false}, {"max_window_layers", 0}}, {0, 0, 0}},
      {"qwen2", {{"sliding_window", 0}, {"use_sliding_window", false}}, {0, 0, 0}},  // not used: not judged
      {"qwen2", {{"use_sliding_window", true}, {"max_window_layers", 1}}, {0, 4096, 4096}},
      {"qwen2",
       {{"sliding_window", nullptr}, {"use_sliding_window", true}, {"max_window_layers", 0}},
       {0, 0, 0}},
      {"qwen3", {{"sliding_window", 12}, {"use_sliding_window", true}, {"max_window_layers", 2}}, {0, 0, 12}},
      {"qwen3",
       {{"sliding_window", 12},
        {"use_sliding_window", true},
        {"max_window_layers", 0},
        {"layer_types", mixed}},
       {0, 0, 12}},
      {"qwen3",
       {{"sliding_window", 12},
        {"use_sliding_window", true},
        {"max_window_layers", 0},
        {"layer_types", full}},
       {0, 0, 0}},
      {"llama", {{"sliding_window", 12}}, {0, 0, 0}},  // no such key in that family
      {"llama", {{"layer_types", full}}, {0, 0, 0}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.family) + " " + c.patch.dump());
    json patch = c.patch;
    patch["num_key_value_heads"] = 4;
    EXPECT_EQ(parse(c.family, patch).window, c.window);
  }
}

TEST(Config, RopeIsFoundWhereverAConfigKeepsIt) {
  struct Case {
    json patch;
    RopeKind kind;
    double theta, factor;
  };
  const std::vector<Case> cases = {
      {{{"rope_theta", 5e5}}, RopeKind::standard, 5e5, 1},
      {{{"rope_parameters", {{"rope_theta", 1e6}, {"rope_type", "default"}}}}, RopeKind::standard, 1e6, 1},
      {{{"rope_theta", 5e5}, {"rope_parameters", {{"rope_type", "default"}}}}, RopeKind::standard, 5e5, 1},
      {{{"rope_theta", 5e5}, {"rope_parameters", {{"rope_theta", 1e6}}}},
       RopeKind::standard,
       1e6,
       1},  // inner wins
      {{{"rope_theta", 5e5}, {"rope_scaling", nullptr}}, RopeKind::standard, 5e5, 1},
      {{{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}}, RopeKind::linear, 1e4, 2},
      {{{"rope_scaling", {{"rope_type", "linear"}, {"type", "yarn"}, {"factor", 2.5}}}},
       RopeKind::linear,
       1e4,
       2.5},
      {{{"rope_parameters", {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 7.0}}}},
       RopeKind::linear,
       7,
       4},
      // Both names: transformers takes the older one unless it is empty.
      {{{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2}}},
        {"rope_parameters", {{"rope_theta", 9.0}}}},
       RopeKind::linear,
       1e4,
       2},
      {{{"rope_scaling", json::object()}, {"rope_parameters", {{"rope_theta", 9.0}}}},
       RopeKind::standard,
       9,
       1},
      {{{"rope_scaling", {{"rope_type", "default"}, {"partial_rotary_factor", 1.0}}}},
       RopeKind::standard,
       1e4,
       1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.patch.dump());
    const RopeConfig rope = parse("llama", c.patch).rope;
    EXPECT_EQ(rope.kind, c.kind);
    EXPECT_EQ(rope.theta, c.theta);
    EXPECT_EQ(rope.factor, c.factor);
    EXPECT_EQ(rope.attention_factor, 1.0);
  }
}

TEST(Config, Llama3ScalingNeedsItsKeys) {
  const json right = {{"rope_type", "llama3"},
                      {"factor", 8.0},
                      {"low_freq_factor", 1.0},
                      {"high_freq_factor", 4.0},
                      {"original_max_position_embeddings", 8192}};
  const RopeConfig rope = parse("llama", {{"rope_scaling", right}, {"rope_theta", 5e5}}).rope;
  EXPECT_EQ(rope.kind, RopeKind::llama3);
  EXPECT_EQ(rope.factor, 8.0);
  EXPECT_EQ(rope.low_freq_factor, 1.0);
  EXPECT_EQ(rope.high_freq_factor, 4.0);
  EXPECT_EQ(rope.original_max_position, 8192.0);
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor"}) {
    json less = right;
    less.erase(key);
    expect_line(input_error([&] {
                  parse("llama", {{"rope_scaling", less}});
                }),
                {"config.json", std::string("rope_scaling.") + key, "no such key"});
  }
  json less = right;  // the length falls back to max_position_embeddings there
  less.erase("original_max_position_embeddings");
  EXPECT_EQ(
      parse("llama", {{"rope_scaling", less}, {"max_position_embeddings", 99}}).rope.original_max_position,
      99);
  json equal = right;  // the band between them would divide by zero
  equal["high_freq_factor"] = 1.0;
  expect_line(input_error([&] {
                parse("llama", {{"rope_scaling", equal}});
              }),
              {"high_freq_factor", "above low_freq_factor"});
}

TEST(Config, YarnIsResolvedAsTransformersDoes) {
  struct Case {
    json yarn, top;
    double factor, original, attention, fast, slow;
    bool truncate;
  };
  const double ln8 = std::log(8.0);
  const std::vector<Case> cases = {
      {{{"factor", 8.0}, {"original_max_position_embeddings", 64}},
       json::object(),
       8,
       64,
       0.1 * ln8 + 1,
       32,
       1,
       true},
      {{{"factor", 8.0}}, {{"max_position_embeddings", 512}}, 8, 512, 0.1 * ln8 + 1, 32, 1, true},
      // The length at the top wins over the one inside.
      {{{"factor", 8.0}, {"original_max_position_embeddings", 64}},
       {{"original_max_position_embeddings", 128}},
       8,
       128,
       0.1 * ln8 + 1,
       32,
       1,
       true},
      // A factor that is null is the ratio of the lengths.
      {{{"factor", nullptr}, {"original_max_position_embeddings", 64}},
       {{"max_position_embeddings", 512}},
       8,
       64,
       0.1 * ln8 + 1,
       32,
       1,
       true},
      {{{"factor", 8.0}, {"attention_factor", 0.75}, {"mscale", 1.0}, {"mscale_all_dim", 0.5}},
       json::object(),
       8,
       2048,
       0.75,
       32,
       1,
       true},
      {{{"factor", 8.0}, {"mscale", 1.0}, {"mscale_all_dim", 0.5}},
       json::object(),
       8,
       2048,
       (0.1 * ln8 + 1) / (0.05 * ln8 + 1),
       32,
       1,
       true},
      {{{"factor", 8.0}, {"mscale", 0.7}}, json::object(), 8, 2048, 0.1 * ln8 + 1, 32, 1, true},  // both or
                                                                                                  // none
      {{{"factor", 8.0}, {"mscale", 0.7}, {"mscale_all_dim", 0}},
       json::object(),
       8,
       2048,
       0.1 * ln8 + 1,
       32,
       1,
       true},
      {{{"factor", 0.5}}, json::object(), 0.5, 2048, 1.0, 32, 1, true},
      {{{"factor", 8.0}, {"beta_fast", 16}, {"beta_slow", 2}, {"truncate", false}},
       json::object(),
       8,
       2048,
       0.1 * ln8 + 1,
       16,
       2,
       false},
      {{{"factor", 8.0}, {"beta_fast", 0}, {"beta_slow", nullptr}},
       json::object(),
       8,
       2048,
       0.1 * ln8 + 1,
       32,
       1,
       true},
  };
  for (const Case& c : cases) {
    json yarn = c.yarn;
    yarn["rope_type"] = "yarn";
    json patch = c.top;
    patch["rope_parameters"] = yarn;
    SCOPED_TRACE(patch.dump());
    const RopeConfig rope = parse("llama", patch).rope;
    EXPECT_EQ(rope.kind, RopeKind::yarn);
    EXPECT_EQ(rope.factor, c.factor);
    EXPECT_EQ(rope.original_max_position, c.original);
    EXPECT_TRUE(std::abs(rope.attention_factor - c.attention) <= 1e-15) << rope.attention_factor;
    EXPECT_EQ(rope.beta_fast, c.fast);
    EXPECT_EQ(rope.beta_slow, c.slow);
    EXPECT_EQ(rope.truncate, c.truncate);
  }
}

TEST(Config, WhatCannotBeUsedIsNamedWithItsKey) {
  struct Case {
    const char* family;
    json patch;
    std::vector<std::string> parts;
  };
  const json sliding = {"sliding_attention", "sliding_attention", "sliding_attention"};
  const std::vector<Case> cases = {
      {"gemma2", json::object(), {"model_type", "llama, mistral, qwen2 or qwen3", "\"gemma2\""}},
      {"llama", {{"model_type", nullptr}}, {"model_type", "null"}},
      {"llama", {{"model_type", 7}}, {"model_type", "a string", "7"}},
      {"llama", {{"text_config", json::object()}}, {"text_config", "multimodal"}},
      {"qwen3", {{"num_experts", 128}}, {"num_experts", "mixture of experts", "128"}},
      {"llama", {{"quantization_config", {{"quant_method", "gptq"}}}}, {"quantization_config", "\"gptq\""}},
      {"llama", {{"quantization_config", "FP8"}}, {"quantization_config", "\"FP8\""}},
      {"llama", {{"compression_config", json::object()}}, {"compression_config"}},
      {"llama", {{"hidden_size", nullptr}}, {"hidden_size", "null"}},
      {"llama", {{"hidden_size", "64"}}, {"hidden_size", "a whole number", "\"64\""}},
      {"llama", {{"hidden_size", 64.0}}, {"hidden_size", "64.0"}},
      {"llama", {{"hidden_size", 0}}, {"hidden_size", "0"}},
      {"llama", {{"hidden_size", -64}}, {"hidden_size", "-64"}},
      {"llama", {{"hidden_size", 1ULL << 63}}, {"hidden_size", "9223372036854775808"}},
      {"llama", {{"hidden_size", 1LL << 40}}, {"hidden_size", "1099511627776"}},
      {"llama", {{"hidden_size", true}}, {"hidden_size", "true"}},
      {"llama", {{"hidden_size", json::array({64})}}, {"hidden_size", "an array of 1"}},
      {"llama", {{"num_hidden_layers", 0}}, {"num_hidden_layers"}},
      {"llama", {{"num_hidden_layers", 2000000000}}, {"num_hidden_layers", "10000", "2000000000"}},
      {"llama", {{"vocab_size", 0}}, {"vocab_size"}},
      {"llama", {{"num_attention_heads", 0}}, {"num_attention_heads"}},
      {"llama", {{"num_key_value_heads", 0}}, {"num_key_value_heads"}},
      {"llama", {{"num_key_value_heads", 3}}, {"num_key_value_heads", "divisor", "3"}},
      {"llama", {{"head_dim", 0}}, {"head_dim"}},
      {"llama", {{"head_dim", 15}}, {"head_dim", "even", "15"}},
      {"llama", {{"max_position_embeddings", -1}}, {"max_position_embeddings"}},
      {"llama", {{"rms_norm_eps", 0}}, {"rms_norm_eps", "above 0"}},
      {"llama", {{"rms_norm_eps", 3}}, {"rms_norm_eps"}},
      {"llama", {{"rms_norm_eps", "1e-5"}}, {"rms_norm_eps", "\"1e-5\""}},
      {"llama", {{"hidden_act", "gelu"}}, {"hidden_act", "silu", "\"gelu\""}},
      {"llama", {{"tie_word_embeddings", "yes"}}, {"tie_word_embeddings", "true or false"}},
      {"llama", {{"attention_bias", 1}}, {"attention_bias", "true or false"}},
      {"llama", {{"layer_types", sliding}}, {"layer_types[0]", "llama"}},
      {"mistral",
       {{"layer_types", sliding}, {"sliding_window", nullptr}},
       {"layer_types[0]", "sliding_window is null"}},
      {"qwen2",
       {{"layer_types", sliding}, {"use_sliding_window", false}},
       {"layer_types[0]", "use_sliding_window"}},
      {"qwen2", {{"layer_types", {"full_attention"}}}, {"layer_types", "3 entries"}},
      {"qwen2",
       {{"layer_types", {"full_attention", "chunked_attention", "full_attention"}}},
       {"layer_types[1]", "chunked_attention"}},
      {"qwen2", {{"layer_types", "full_attention"}}, {"layer_types", "an array"}},
      {"qwen2", {{"layer_types", {1, 2, 3}}}, {"layer_types[0]", "1"}},
      {"mistral", {{"sliding_window", 0}}, {"sliding_window", "0"}},
      {"mistral", {{"sliding_window", "4096"}}, {"sliding_window", "\"4096\""}},
      {"qwen2", {{"use_mrope", true}}, {"use_mrope"}},
      {"llama", {{"rope_theta", 0}}, {"rope_theta", "above 1"}},
      {"llama", {{"rope_theta", "1e4"}}, {"rope_theta"}},
      {"llama", {{"rope_scaling", "linear"}}, {"rope_scaling", "an object"}},
      {"llama",
       {{"rope_scaling", {{"type", "dynamic"}, {"factor", 2}}}},
       {"rope_scaling.type", "\"dynamic\""}},
      {"llama", {{"rope_scaling", {{"rope_type", "longrope"}}}}, {"rope_scaling.rope_type", "\"longrope\""}},
      {"qwen2",
       {{"rope_scaling", {{"type", "mrope"}, {"mrope_section", {1, 2}}}}},
       {"rope_scaling.type", "\"mrope\""}},
      {"llama", {{"rope_scaling", {{"type", 3}}}}, {"rope_scaling.type", "a string"}},
      {"llama", {{"rope_scaling", {{"type", "linear"}}}}, {"rope_scaling.factor", "no such key"}},
      {"llama", {{"rope_scaling", {{"type", "linear"}, {"factor", -1}}}}, {"rope_scaling.factor", "-1"}},
      {"llama", {{"rope_scaling", {{"type", "yarn"}}}}, {"rope_scaling.factor", "no such key"}},
      {"llama",
       {{"rope_parameters", {{"rope_type", "yarn"}, {"factor", 8}, {"beta_fast", 1}, {"beta_slow", 2}}}},
       {"rope_parameters.beta_fast"}},
      // S21: rotating the whole head would be wrong without a sign of it.
      {"llama", {{"partial_rotary_factor", 0.25}}, {"partial_rotary_factor", "0.25"}},
      {"llama",
       {{"rope_parameters", {{"partial_rotary_factor", 0.5}}}},
       {"rope_parameters.partial_rotary_factor", "0.5"}},
      {"llama", {{"rope_scaling", {{"a\nb", json::object()}}}}, {"\"a\\x0Ab\""}},  // stays one line
      {"qwen3",
       {{"rope_parameters", {{"full_attention", {{"rope_theta", 1e6}}}}}},
       {"rope_parameters.full_attention"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.family) + " " + c.patch.dump());
    json patch = c.patch;
    if (!patch.contains("num_key_value_heads")) patch["num_key_value_heads"] = 4;
    const std::string line = input_error([&] { parse(c.family, patch); });
    expect_line(line, c.parts);
    expect_line(line, {"bad config: config.json: key ", "expected", "found"});
  }
}

TEST(Config, EveryNeededKeyIsNeeded) {
  for (const char* key : {"model_type", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "vocab_size"}) {
    json config = base("llama");
    config.erase(key);
    expect_line(input_error([&] { parse_config(config, "c.json"); }), {"c.json", key, "no such key"});
  }
}

TEST(Config, AFileThatIsNoConfigIsRefusedInOneLine) {
  const auto dir = fresh_dir("config");
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"", {"not JSON"}},
      {"{\"a\":", {"not JSON at byte"}},
      {"[]", {"a JSON object", "an array of 0"}},
      {"null", {"a JSON object", "null"}},
      {R"({"hidden_size":1,"hidden_size":2})", {"\"hidden_size\"", "twice"}},
      {R"({"a":{"b":1,"b":1}})", {"\"b\"", "twice"}},
      {std::string("{}\0garbage", 9), {"NUL"}},
      {"{\"a\":\"\xFF\"}", {"not JSON at byte"}},
      {R"({"a":1e999})", {"not JSON"}},
      {std::string(100000, '['), {"nested too deeply"}},
  };
  for (const auto& [text, parts] : cases) {
    SCOPED_TRACE(text.substr(0, 40));
    write_file(dir / "config.json", text);
    expect_line(input_error([&] { read_config(dir / "config.json"); }), parts);
  }
  expect_line(input_error([&] { read_config(dir / "none.json"); }), {"none.json"});
  write_file(dir / "config.json", base("llama").dump());
  EXPECT_EQ(read_config(dir / "config.json").source, (dir / "config.json").string());
}

}  // namespace
}  // namespace quantmap::testing
