// What a reader may conclude, through the command line: intervals and comparisons in the rows, the gate's
// exit status, two runs side by side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/paths.hpp"
#include "support/run.hpp"

namespace quantmap {
namespace {

using testing::demo_dir;
using ::testing::ElementsAre;
using testing::fresh_dir;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::run_quantmap;
using testing::RunResult;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Words eval_demo(const char* windows = "4") {
  return {"eval", demo_dir().string(), "--text", (demo_dir() / "text.txt").string(), "--ctx",
          "64",   "--windows",         windows};
}

RunResult must(const Words& words, const std::string& dir) {
  RunResult r = run_quantmap(words, dir);
  EXPECT_EQ(r.status, 0) << r.err;
  return r;
}

TEST(Judge, EvalComparesEverySchemeWithEveryOtherAndKeepsIt) {
  const std::string dir = fresh_dir("judge_eval").string();
  const Words eval = eval_demo() + Words{"--schemes", "W4A16", "NVFP4", "--format", "json", "--quiet"};
  const Json document = Json::parse(must(eval, dir).out);
  const Json& pairs = document["comparisons"];
  ASSERT_EQ(pairs.size(), 4U);  // ln_ppl_ratio: 3 pairs; KL: 1, the reference's is 0 by definition
  for (const Json& pair : pairs) {
    EXPECT_EQ(pair["windows"], 4);
    EXPECT_LE(pair["low"].get<double>(), pair["difference"].get<double>());
    EXPECT_LE(pair["difference"].get<double>(), pair["high"].get<double>());
    EXPECT_GE(pair["p_holm"].get<double>(), pair["p"].get<double>());
  }
  const Json &rows = document["rows"], &kl = pairs[3];
  EXPECT_EQ(kl["metric"], "kl_mean");
  EXPECT_EQ(kl["scheme"], "NVFP4");
  EXPECT_EQ(kl["than"], "W4A16");
  EXPECT_NEAR(kl["difference"].get<double>(),
              rows[2]["kl_mean"].get<double>() - rows[1]["kl_mean"].get<double>(), 1e-12);
  EXPECT_LE(rows[1]["kl_low"].get<double>(), rows[1]["kl_mean"].get<double>());
  const RunResult stored =
      must({"query", "--sql", "SELECT difference, verdict FROM comparisons WHERE metric = 'kl_mean'",
            "--format", "json"},
           dir);
  EXPECT_EQ(Json::parse(stored.out)[0]["difference"], kl["difference"]);
}

TEST(Judge, RequireSpeaksThroughTheExitStatus) {
  const std::string dir = fresh_dir("judge_require").string();
  struct Row {
    const char* conditions;
    const char* windows;
    int status;
    const char* says;
  };
  const Row kRows[] = {
      {"kl<10", "4", 0, "pass: NVFP4 kl<10"},
      {"kl<10 kl<1e-9", "4", 4, "fail: NVFP4 kl<1e-9"},
      {"kl<10", "1", 5, "undecided: NVFP4 kl<10"},                     // one window: no standard error
      {"kl<10 weight_bytes<1", "1", 4, "fail: NVFP4 weight_bytes<1"},  // one that fails decides
      {"tokens_scored>=63", "1", 0, "pass: NVFP4 tokens_scored>=63"},
  };
  for (const Row& row : kRows) {
    const RunResult r =
        run_quantmap(eval_demo(row.windows) + Words{"--schemes", "NVFP4", "--require", row.conditions}, dir);
    EXPECT_EQ(r.status, row.status) << row.conditions << "\n" << r.err;
    EXPECT_THAT(r.err, HasSubstr(row.says));
    EXPECT_THAT(r.out, HasSubstr("NVFP4"));  // the rows are printed and stored whatever the verdict
  }
  // --quiet silences progress, not the verdict; a resumed complete run is judged again.
  const RunResult again = run_quantmap(
      eval_demo() + Words{"--schemes", "NVFP4", "--require", "kl<1e-9", "--resume", "--quiet"}, dir);
  EXPECT_EQ(again.status, 4);
  EXPECT_THAT(again.err, HasSubstr("fail: NVFP4 kl<1e-9"));
}

TEST(Judge, ARequirementThatNothingCanMeetOrFailIsAMistake) {
  const std::string dir = fresh_dir("judge_require_bad").string();
  for (const char* conditions : {"", "kl", "kl<", "kl<x", "acc>1", "kl=1", "kl<nan"}) {
    const RunResult r = run_quantmap(eval_demo() + Words{"--schemes", "NVFP4", "--require", conditions}, dir);
    EXPECT_EQ(r.status, 2) << conditions << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  }
  EXPECT_EQ(run_quantmap(eval_demo() + Words{"--schemes", "BF16", "--require", "kl<1"}, dir).status, 2);
}

TEST(Judge, TasksAloneHaveNoTableOfPerplexity) {
  const std::string dir = fresh_dir("judge_tasks").string();
  const RunResult r =
      must({"eval", demo_dir().string(), "--tasks", "demo", "--items", "0-5", "--schemes", "W4A16"}, dir);
  EXPECT_THAT(r.out, Not(HasSubstr("perplexity  bits")));
  EXPECT_THAT(r.out, Not(HasSubstr("0 windows")));
  EXPECT_THAT(r.err, HasSubstr("6 items of tasks"));
}

// A mask and labels in the token ids: the whole is what is scored, each label is judged alone.
TEST(Judge, SegmentsOfTokenIdsAreJudgedEach) {
  const auto dir = fresh_dir("judge_segments");
  Json windows = Json::array();
  for (int w = 0; w < 4; ++w) {
    Json one = {{"ids", Json::array()}, {"score", Json::array()}, {"segment", Json::array()}};
    for (int t = 0; t < 20 + w; ++t) {
      one["ids"].push_back((17 * t + 29 * w) % 1000);
      one["score"].push_back(t % 4 == 0 ? 0 : 1);
      one["segment"].push_back(t < 10 ? "question" : "answer");
    }
    windows.push_back(one);
  }
  std::ofstream(dir / "ids.json") << windows;
  const Words eval = {"eval",  demo_dir().string(), "--token-ids", "ids.json", "--schemes",
                      "NVFP4", "--format",          "json",        "--quiet"};
  const Json d = Json::parse(must(eval, dir.string()).out);
  EXPECT_EQ(d["protocol"]["score"].get<std::string>().substr(0, 5), "mask ");
  ASSERT_EQ(d["segments"].size(), 4U);
  std::int64_t tokens = 0;
  double kl = 0;
  for (const Json& row : d["segments"])
    if (row["scheme"] == "NVFP4") {
      tokens += row["tokens"].get<std::int64_t>();
      kl += row["tokens"].get<double>() * row["kl_mean"].get<double>();
    } else {
      EXPECT_EQ(row["kl_mean"], 0.0);
    }
  const Json& whole = d["rows"][1];
  EXPECT_EQ(whole["tokens_scored"], tokens);
  EXPECT_EQ(tokens, 15 + 15 + 16 + 17);  // three of four, but for the first of each window
  EXPECT_NEAR(kl / static_cast<double>(tokens), whole["kl_mean"].get<double>(), 1e-6);
  // The labels are part of the run's identity, and so of what a resumed run finds.
  const Json again = Json::parse(must(eval + Words{"--resume"}, dir.string()).out);
  EXPECT_EQ(again["run"], d["run"]);
  EXPECT_EQ(again["segments"], d["segments"]);
  for (Json& one : windows) one["segment"] = "all";
  std::ofstream(dir / "ids.json") << windows;
  const Json other = Json::parse(must(eval + Words{"--resume"}, dir.string()).out);
  EXPECT_NE(other["run"], d["run"]);
  EXPECT_EQ(other["segments"].size(), 2U);
  EXPECT_EQ(run_quantmap(eval + Words{"--score", "all"}, dir.string()).status, 2);
}

TEST(Diff, OfTheSameMeasurementTwiceIsEqualThroughout) {
  const std::string dir = fresh_dir("diff_same").string();
  const Words eval =
      eval_demo() + Words{"--tasks", "demo", "--items", "0-9", "--quiet", "--schemes", "W4A16"};
  must(eval, dir);
  must(eval + Words{"NVFP4"}, dir);
  const Json d = Json::parse(must({"diff", "1", "2", "--format", "json"}, dir).out);
  EXPECT_THAT(d["differs"], IsEmpty());
  EXPECT_THAT(d["only_first"], IsEmpty());
  EXPECT_THAT(d["only_second"], ElementsAre("NVFP4"));
  ASSERT_EQ(d["rows"].size(), 3U);  // KL of W4A16; perplexity of it and of the reference
  for (const Json& row : d["rows"]) {
    EXPECT_TRUE(row["paired"].get<bool>());
    EXPECT_EQ(row["difference"], 0.0);
    EXPECT_EQ(row["verdict"], "equal");
  }
  ASSERT_EQ(d["tasks"].size(), 2U);
  for (const Json& row : d["tasks"]) {
    EXPECT_EQ(row["items"], 10);
    EXPECT_EQ(row["verdict"], "equal");
  }
  EXPECT_EQ(d["layer_errors"]["compared"], d["layer_errors"]["equal"]);
  EXPECT_GT(d["layer_errors"]["compared"].get<int>(), 0);
}

TEST(Diff, IsTheSecondLessTheFirstAndTheOtherWayRoundItsNegative) {
  const std::string dir = fresh_dir("diff_sign").string();
  must(eval_demo() + Words{"--schemes", "NVFP4", "--quiet"}, dir);
  must(eval_demo() + Words{"--schemes", "NVFP4", "--compute", "f32", "--quiet"}, dir);
  const Json ab = Json::parse(must({"diff", "1", "2", "--format", "json"}, dir).out);
  const Json ba = Json::parse(must({"diff", "2", "1", "--format", "json"}, dir).out);
  ASSERT_EQ(ab["rows"].size(), ba["rows"].size());
  for (std::size_t i = 0; i < ab["rows"].size(); ++i) {
    EXPECT_EQ(ab["rows"][i]["difference"].get<double>(), -ba["rows"][i]["difference"].get<double>());
    EXPECT_EQ(ab["rows"][i]["low"].get<double>(), -ba["rows"][i]["high"].get<double>());
    EXPECT_EQ(ab["rows"][i]["p"], ba["rows"][i]["p"]);
  }
  EXPECT_NEAR(ab["rows"][0]["difference"].get<double>(),
              ab["rows"][0]["second"].get<double>() - ab["rows"][0]["first"].get<double>(), 1e-12);
  ASSERT_EQ(ab["differs"].size(), 1U);
  EXPECT_EQ(ab["differs"][0]["field"], "compute");
}

TEST(Diff, OfOtherTokensIsNotPaired) {
  const std::string dir = fresh_dir("diff_other").string();
  must(eval_demo("4") + Words{"--schemes", "NVFP4", "--quiet"}, dir);
  must(eval_demo("5") + Words{"--schemes", "NVFP4", "--quiet"}, dir);
  const Json d = Json::parse(must({"diff", "1", "2", "--format", "json"}, dir).out);
  for (const Json& row : d["rows"]) EXPECT_FALSE(row["paired"].get<bool>());
  EXPECT_THAT(must({"diff", "1", "2"}, dir).out, HasSubstr("not paired"));
}

TEST(Diff, EachMistakeIsOneClearLine) {
  const std::string dir = fresh_dir("diff_bad").string();
  must(eval_demo() + Words{"--schemes", "NVFP4", "--quiet"}, dir);
  must({"outliers", demo_dir().string(), "--text", (demo_dir() / "text.txt").string(), "--ctx", "64",
        "--windows", "1", "--quiet"},
       dir);
  struct Row {
    Words words;
    int status;
    const char* says;
  };
  const Row kRows[] = {
      {{"diff"}, 2, "two runs"},
      {{"diff", "1"}, 2, "two runs"},
      {{"diff", "1", "1"}, 2, "different"},
      {{"diff", "1", "x"}, 2, "\"x\""},
      {{"diff", "1", "-2"}, 2, ""},
      {{"diff", "1", "7"}, 3, "no run 7"},
      {{"diff", "1", "2"}, 3, "no row in common"},
      {{"diff", "1", "2", "--db", "absent.db"}, 3, "absent.db"},
  };
  for (const Row& row : kRows) {
    const RunResult r = run_quantmap(row.words, dir);
    EXPECT_EQ(r.status, row.status) << r.err;
    EXPECT_THAT(r.err, HasSubstr(row.says));
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_EQ(r.out, "");
  }
}

}  // namespace
}  // namespace quantmap
