// `error` on the command line: the JSON of the contract, a capture in place of the model, refusals by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

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

const std::vector<std::string> kText = {
    "--text", (demo_dir() / "text.txt").string(), "--ctx", "128", "--windows", "2"};

RunResult error(const std::filesystem::path& dir, const std::string& model, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"error", model, "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_quantmap(arguments, dir.string());
}

std::vector<std::string> with_text(std::vector<std::string> more) {
  more.insert(more.end(), kText.begin(), kText.end());
  return more;
}

// By site, kind and scope of each scheme.
std::map<std::string, Json> by_place(const std::string& out) {
  std::map<std::string, Json> rows;
  const Json document = Json::parse(out);
  for (const Json& row : document["rows"])
    rows[row["scheme"].get<std::string>() + " " + row["site"].get<std::string>() + " " +
         row["kind"].get<std::string>() + " " + row["scope"].get<std::string>()] = row;
  return rows;
}

TEST(ErrorCommand, PrintsTheJsonOfTheContractAndStoresIt) {
  const auto dir = fresh_dir("error_json");
  const RunResult r =
      error(dir, demo_dir().string(), with_text({"--format", "json", "--schemes", "W4A16", "NVFP4+KVINT8"}));
  ASSERT_EQ(r.status, 0) << r.err;
  const Json document = Json::parse(r.out);
  EXPECT_EQ(document["protocol"]["windows"], 2);
  EXPECT_EQ(document["fingerprints"]["model"].get<std::string>().size(), 64U);
  const auto rows = by_place(r.out);
  // 7 weights; 7 inputs, 7 outputs, keys, values, attention twice in three scopes; the stream in one; sums.
  EXPECT_EQ(rows.size(), 2U * (6 * (7 + 18 * 3 + 1) + 1 + 6 * 3));
  const std::vector<std::string> fields = {"layer",
                                           "site",
                                           "scope",
                                           "kind",
                                           "scheme",
                                           "rel_error",
                                           "rel_error_residual",
                                           "sqnr_db",
                                           "cosine",
                                           "max_abs_error",
                                           "amax",
                                           "kurtosis",
                                           "saturated",
                                           "nonfinite",
                                           "count",
                                           "row_error_p50",
                                           "row_error_p90",
                                           "rel_error_rest",
                                           "status"};
  std::vector<std::string> names;
  const auto ordered = nlohmann::ordered_json::parse(r.out)["rows"][0];
  for (const auto& [name, value] : ordered.items()) names.push_back(name);
  EXPECT_EQ(names, fields);
  const Json& down = rows.at("W4A16 model.layers.3.mlp.down_proj output output local");
  EXPECT_EQ(down["layer"], 3);
  EXPECT_EQ(down["count"], 2 * 128 * 256);
  EXPECT_GT(down["rel_error"].get<double>(), 0.01);
  EXPECT_LT(down["rel_error_residual"].get<double>(), down["rel_error"].get<double>());
  EXPECT_TRUE(
      rows.at("W4A16 model.layers.3.mlp.up_proj output output local")["rel_error_residual"].is_null());
  EXPECT_EQ(rows.at("W4A16 model.layers.3.self_attn key key local")["rel_error"], 0.0);
  EXPECT_GT(rows.at("NVFP4+KVINT8 model.layers.3.self_attn key key local")["rel_error"].get<double>(), 0.0);

  // What was printed is what was stored, and the map is ready to draw.
  const RunResult map =
      run_quantmap({"query", "--sql",
                    "SELECT layer, module, rel_error FROM layer_error_map WHERE scheme = 'W4A16' "
                    "AND kind = 'output' AND scope = 'local' AND module = 'down_proj' ORDER BY layer",
                    "--format", "json"},
                   dir.string());
  ASSERT_EQ(map.status, 0) << map.err;
  const Json cells = Json::parse(map.out);
  ASSERT_EQ(cells.size(), 6U);
  EXPECT_EQ(cells[3]["rel_error"], down["rel_error"]);
}

TEST(ErrorCommand, ACaptureGivesTheModelsLocalErrorsToTheBit) {
  const auto dir = fresh_dir("error_capture");
  std::vector<std::string> capture = {"capture", demo_dir().string(), "--quiet", "--output", "c.h5"};
  capture.insert(capture.end(), kText.begin(), kText.end());
  ASSERT_EQ(run_quantmap(capture, dir.string()).status, 0);
  const std::vector<std::string> schemes = {"--format",    "json",  "--schemes",
                                            "W8A8+KVINT8", "NVFP4", "w=nf4,a=fp8_e4m3:tensor,kv=int8:tensor"};
  const RunResult from_capture = error(dir, "c.h5", schemes);
  ASSERT_EQ(from_capture.status, 0) << from_capture.err;
  auto arguments = schemes;
  arguments.insert(arguments.end(),
                   {"--scope", "local", "--kind", "weight", "activation", "output", "key", "value"});
  const RunResult from_model = error(dir, demo_dir().string(), with_text(arguments));
  ASSERT_EQ(from_model.status, 0) << from_model.err;
  EXPECT_EQ(Json::parse(from_capture.out)["rows"], Json::parse(from_model.out)["rows"]);
  EXPECT_EQ(Json::parse(from_capture.out)["fingerprints"], Json::parse(from_model.out)["fingerprints"]);
  EXPECT_EQ(Json::parse(from_capture.out)["rows"].size(), 3U * (6 * (7 + 7 + 7 + 2) + 5));

  for (const auto& [option, value] :
       std::vector<std::pair<std::string, std::string>>{{"--scope", "total"},
                                                        {"--scope", "inherited"},
                                                        {"--kind", "attention_output"},
                                                        {"--kind", "attention_weights"}}) {
    const RunResult refused = error(dir, "c.h5", {"--schemes", "W4A16", option, value});
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr(option + " " + value));
    EXPECT_THAT(refused.err, HasSubstr("needs the model"));
  }
  EXPECT_EQ(error(dir, "c.h5", with_text({"--schemes", "W4A16"})).status, 2) << "it brings its own text";
}

TEST(ErrorCommand, APartOfACaptureGivesAPartOfTheTables) {
  const auto dir = fresh_dir("error_part");
  std::vector<std::string> capture = {"capture",
                                      demo_dir().string(),
                                      "--quiet",
                                      "--output",
                                      "c.h5",
                                      "--sites",
                                      "layers.1.mlp.down_proj (input|output)",
                                      "layers.1.mlp.down_proj.weight"};
  capture.insert(capture.end(), kText.begin(), kText.end());
  ASSERT_EQ(run_quantmap(capture, dir.string()).status, 0);
  const RunResult r = error(dir, "c.h5", {"--format", "json", "--schemes", "W4A8"});
  ASSERT_EQ(r.status, 0) << r.err;
  const auto rows = by_place(r.out);
  EXPECT_EQ(rows.size(), 6U) << "weight, input, output, and their sums";
  const RunResult whole = error(dir, demo_dir().string(),
                                with_text({"--format", "json", "--schemes", "W4A8", "--sites",
                                           "layers.1.mlp.down_proj", "--scope", "local"}));
  Json part = rows.at("W4A8 model.layers.1.mlp.down_proj output output local");
  EXPECT_TRUE(part["rel_error_residual"].is_null()) << "no stream was captured";
  part["rel_error_residual"] =
      by_place(whole.out).at("W4A8 model.layers.1.mlp.down_proj output output local")["rel_error_residual"];
  EXPECT_EQ(part, by_place(whole.out).at("W4A8 model.layers.1.mlp.down_proj output output local"));
}

TEST(ErrorCommand, WithoutATextWeightsAreMeasuredAndItIsSaid) {
  const auto dir = fresh_dir("error_weights");
  const RunResult r =
      run_quantmap({"error", demo_dir().string(), "--schemes", "NVFP4,include=lm_head"}, dir.string());
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("weights only"));
  EXPECT_THAT(r.out, HasSubstr("lm_head weight"));
  const RunResult refused = error(dir, demo_dir().string(), {"--schemes", "NVFP4", "--kind", "key"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--kind key"));
}

TEST(ErrorCommand, EachMistakeIsOneClearLineAndNoRun) {
  const auto dir = fresh_dir("error_mistakes");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "no --schemes given"},
      {{"--schemes", "BF16"}, "no --schemes given"},
      {{"--schemes", "W4A16", "--kind", "weights"}, "it is one of weight, activation"},
      {{"--schemes", "W4A16", "--scope", "loc"}, "it is one of local, inherited, total"},
      {{"--schemes", "W4A16", "--sites", "("}, "regex"},
      {{"--schemes", "W4A16", "--sites", "no such site"}, "leaves nothing"},
      {{"--schemes", "W4A16", "--memory", "1M", "--text", (demo_dir() / "text.txt").string()},
       "the least possible"},
  };
  for (const auto& [arguments, message] : cases) {
    const RunResult r = error(dir, demo_dir().string(), arguments);
    EXPECT_EQ(r.status, 2) << message;
    EXPECT_THAT(r.err, HasSubstr(message));
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  }
}

}  // namespace
}  // namespace quantmap
