// `outliers` on the command line: its JSON, what it stores, a capture in place of the model, refusals by
// name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
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

RunResult quantmap(const std::filesystem::path& dir, const std::string& command, const std::string& model,
                   std::vector<std::string> more) {
  std::vector<std::string> arguments = {command, model, "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_quantmap(arguments, dir.string());
}

const std::vector<std::string> kSchemes = {"--format", "json", "--schemes", "a=int8:tensor", "NVFP4+KVINT8"};

std::vector<std::string> with_text(std::vector<std::string> more) {
  for (const char* word : {"--ctx", "128", "--windows", "3", "--text"}) more.emplace_back(word);
  more.push_back((demo_dir() / "text.txt").string());
  return more;
}

TEST(OutliersCommand, ACaptureGivesTheModelsNumbersToTheLastDigit) {
  const auto dir = fresh_dir("outliers_capture");
  const RunResult model = quantmap(dir, "outliers", demo_dir().string(), with_text(kSchemes));
  ASSERT_EQ(model.status, 0) << model.err;
  const RunResult captured =
      quantmap(dir, "capture", demo_dir().string(), with_text({"--no-weights", "--output", "c.h5"}));
  ASSERT_EQ(captured.status, 0) << captured.err;
  const RunResult capture = quantmap(dir, "outliers", "c.h5", kSchemes);
  ASSERT_EQ(capture.status, 0) << capture.err;
  const Json a = Json::parse(model.out), b = Json::parse(capture.out);
  // 14 sites a layer and the embeddings; 7 of them are judged in a format, keys and values by the second
  // scheme.
  EXPECT_EQ(a["sites"].size(), 6U * 14 + 1);
  EXPECT_EQ(a["shares"].size(), 6U * (5 + 7));
  EXPECT_GE(a["outliers"].size(), 6U * 3) << "the stream's largest value of each window and layer";
  for (const char* part : {"outliers", "sites", "shares"}) EXPECT_EQ(a[part], b[part]) << part;

  const RunResult stored = run_quantmap(
      {"query", "--format", "csv", "--sql",
       "SELECT count(*) FROM outlier_shares WHERE run = 1 UNION ALL SELECT count(*) FROM site_statistics "
       "WHERE run = 1 UNION ALL SELECT count(DISTINCT run) FROM outliers"},
      dir.string());
  EXPECT_THAT(stored.out, HasSubstr("72\r\n85\r\n2\r\n")) << stored.err;
  EXPECT_EQ(run_quantmap({"query", "outlier_shares"}, dir.string()).status, 0);
}

TEST(OutliersCommand, RefusesByNameWhatItCannotUse) {
  const auto dir = fresh_dir("outliers_refusals");
  const RunResult no_text = quantmap(dir, "outliers", demo_dir().string(), {});
  EXPECT_EQ(no_text.status, 2);
  EXPECT_THAT(no_text.err, HasSubstr("--text"));
  const RunResult weights =
      quantmap(dir, "capture", demo_dir().string(), {"--weights-only", "--output", "w.h5"});
  ASSERT_EQ(weights.status, 0) << weights.err;
  const RunResult none = quantmap(dir, "outliers", "w.h5", {});
  EXPECT_EQ(none.status, 3);
  EXPECT_THAT(none.err, HasSubstr("it holds no activations"));
  const RunResult both = quantmap(dir, "outliers", "w.h5", {"--ctx", "128"});
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--ctx"));
  std::ofstream(dir / "foreign.h5") << "\x89HDF\r\n\x1a\nnothing of the kind";
  EXPECT_EQ(quantmap(dir, "outliers", "foreign.h5", {}).status, 3);
  EXPECT_FALSE(std::filesystem::exists(dir / "quantmap.db")) << "bad input leaves no file behind";
}

}  // namespace
}  // namespace quantmap
