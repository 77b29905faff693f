// `size`, `inspect` and the first look as a user meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/mapped_file.hpp"
#include "support/paths.hpp"
#include "support/run.hpp"

namespace quantmap {
namespace {

using testing::demo_dir;
using testing::fresh_dir;
using ::testing::HasSubstr;
using testing::run_quantmap;
using testing::RunResult;
using Json = nlohmann::json;

std::string config(const char* name) { return (testing::shared_dir() / "data/configs" / name).string(); }

TEST(MapCommandLine, SizePrintsTheJsonOfTheContract) {
  QUANTMAP_NEEDS(config("models/Qwen--Qwen3-8B_config.json"));
  const RunResult r = run_quantmap({"size", config("models/Qwen--Qwen3-8B_config.json"), "--scheme", "BF16",
                                    "NVFP4+KVFP8", "--requests", "32", "--gpu", "GB10", "--format", "json"});
  ASSERT_EQ(r.status, 0) << r.err;
  const Json rows = Json::parse(r.out)["rows"];
  ASSERT_EQ(rows.size(), 2U);
  for (const char* key : {"scheme", "parameters", "weight_bytes", "embedding_bytes", "lm_head_bytes",
                          "bpw_quantized", "bpw_model", "kv_bytes_per_token", "kv_bytes", "cached_tokens",
                          "decode_tokens_per_s", "prefill_seconds"})
    EXPECT_TRUE(rows[0].contains(key)) << key;
  EXPECT_EQ(rows[0]["parameters"], 8'190'735'360);
  EXPECT_EQ(rows[0]["embedding_bytes"], 1'244'659'712);
  EXPECT_EQ(rows[0]["lm_head_bytes"], 1'244'659'712);
  EXPECT_EQ(rows[0]["kv_bytes"], 36.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(rows[1]["kv_bytes"], 18.0 * 1024 * 1024 * 1024);
  EXPECT_TRUE(rows[0]["bpw_quantized"].is_null());
  const RunResult plain =
      run_quantmap({"size", config("models/Qwen--Qwen3-8B_config.json"), "--format", "json"});
  for (const char* key : {"cached_tokens", "decode_tokens_per_s", "prefill_seconds"})
    EXPECT_TRUE(Json::parse(plain.out)["rows"][0][key].is_null()) << key;  // no GPU is given
}

TEST(MapCommandLine, SizeWithoutASchemeAddsTheCheckpointsOwn) {
  QUANTMAP_NEEDS(config("quant/deepseek-ai--DeepSeek-V3_config.json"));
  const RunResult r =
      run_quantmap({"size", config("quant/deepseek-ai--DeepSeek-V3_config.json"), "--format", "json"});
  ASSERT_EQ(r.status, 0) << r.err;
  const Json rows = Json::parse(r.out)["rows"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["scheme"], "BF16");
  EXPECT_EQ(rows[1]["scheme"], "FP8 W8A8");
}

TEST(MapCommandLine, ThePictureFitsTheTerminal) {
  QUANTMAP_NEEDS(config("models/Qwen--Qwen3-8B_config.json"));
  const RunResult r = run_quantmap({"size", config("models/Qwen--Qwen3-8B_config.json"), "--gpu", "H100"});
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("█"));
  EXPECT_THAT(r.out, HasSubstr("32 × 8192"));
  EXPECT_THAT(r.out, HasSubstr("│ is the end of H100's 80 GiB"));
}

TEST(MapCommandLine, SizeRefusesByName) {
  struct Case {
    std::vector<std::string> arguments;
    int status;
    const char* message;
  };
  QUANTMAP_NEEDS(config("models/Phi-3.5-MoE_config.json"));
  const std::string qwen = config("models/Qwen--Qwen3-8B_config.json");
  const Case cases[] = {
      {{"size", config("models/Phi-3.5-MoE_config.json")}, 3, "phimoe"},
      {{"size", config("quant/nvidia--Llama-3.1-70B-Instruct-FP8_hf_quant_config.json")},
       3,
       "not what it is"},
      {{"size", qwen, "--gpu", "Voodoo2"}, 2, "no GPU \"Voodoo2\""},
      {{"size", qwen, "--gpu", "H100", "--tflops", "3"}, 2, "not together"},
      {{"size", qwen, "--engine", "mine"}, 2, "no engine"},
      {{"size", qwen, "--context", "0"}, 2, "--context"},
      {{"size", qwen, "--scheme", "W5A99"}, 2, "W5A99"},
      {{"size", "no/such/model"}, 3, "no such file"},
      {{"size"}, 2, "MODEL is missing"},
      {{"inspect"}, 2, "MODEL is missing"},
      {{"inspect", "no/such/model"}, 3, "no such file"},
  };
  for (const Case& c : cases) {
    const RunResult r = run_quantmap(c.arguments);
    EXPECT_EQ(r.status, c.status) << r.err;
    EXPECT_THAT(r.err, HasSubstr(c.message));
    EXPECT_EQ(r.out, "");
  }
}

TEST(MapCommandLine, InspectPrintsTheJsonOfTheContract) {
  QUANTMAP_NEEDS(config("quant/gen-ct-Qwen3-8B-FP8_static_kvfp8_config.json"));
  const RunResult r = run_quantmap(
      {"inspect", config("quant/gen-ct-Qwen3-8B-FP8_static_kvfp8_config.json"), "--format", "json"});
  ASSERT_EQ(r.status, 0) << r.err;
  const Json document = Json::parse(r.out);
  EXPECT_EQ(document["model_type"], "qwen3");
  EXPECT_EQ(document["name"], "FP8 W8A8 + FP8 KV");
  for (const char* choice : {"weights", "activations", "kv_cache"})
    for (const char* key : {"format", "bits", "granularity", "group_size", "symmetric", "dynamic", "source"})
      EXPECT_TRUE(document[choice].contains(key)) << choice << " " << key;
  EXPECT_EQ(document["ignored"], Json({"lm_head"}));
  EXPECT_TRUE(document["tensors"].is_array());
  EXPECT_EQ(document["warnings"], Json::array());
  // 8 bits of 6,945,767,424 values and 16 of each of 252 scales; 16 bits of the other 1,244,967,936.
  EXPECT_NEAR(document["bpw_model"].get<double>(),
              (8.0 * 6945767424 + 252 * 16 + 16.0 * 1244967936) / 8190735360, 1e-12);
}

TEST(MapCommandLine, AFirstLookNamesChoicesSizesAndTheNextCommand) {
  const RunResult r = run_quantmap({demo_dir().string()});
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("KV cache"));
  for (const char* scheme : {"FP8_DYNAMIC", "W8A8", "W4A16", "NVFP4", "BF16+KVFP8"})
    EXPECT_THAT(r.out, HasSubstr(scheme));
  EXPECT_THAT(r.out, HasSubstr("next: "));
  EXPECT_THAT(r.out, HasSubstr("eval " + demo_dir().string()));
  const RunResult nothing = run_quantmap({"no-such-thing"});
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(nothing.err, HasSubstr("unknown command"));
}

TEST(MapCommandLine, InspectOfARealDirectoryListsItsTensors) {
  const RunResult r = run_quantmap({"inspect", demo_dir().string(), "--format", "json"});
  ASSERT_EQ(r.status, 0) << r.err;
  const Json document = Json::parse(r.out);
  EXPECT_EQ(document["name"], "BF16");
  EXPECT_FALSE(document["tensors"].empty());
  EXPECT_EQ(document["bpw_model"], 16.0);
}

TEST(MapCommandLine, NothingIsWritten) {
  QUANTMAP_NEEDS(config("models/Qwen--Qwen3-8B_config.json"));
  const auto dir = fresh_dir("map_no_database");
  ASSERT_EQ(run_quantmap({"size", config("models/Qwen--Qwen3-8B_config.json")}, dir.string()).status, 0);
  EXPECT_TRUE(std::filesystem::is_empty(dir));
}

}  // namespace
}  // namespace quantmap
