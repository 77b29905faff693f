// Tasks on a real model against lm-evaluation-harness's own model class, item by item.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/mapped_file.hpp"
#include "store/database.hpp"
#include "support/paths.hpp"
#include "support/run.hpp"

namespace quantmap {
namespace {

using Json = nlohmann::json;

std::filesystem::path smollm2() {
  if (const char* set = std::getenv("QUANTMAP_SMOLLM2")) return set;
  return testing::source_dir() / "datasets/cache/SmolLM2-135M-Instruct.Q4_1.gguf";
}

// Two of PIQA's items have several spaces before a digit. SmolLM2's own pre-tokenizer, which the GGUF names
// and llama.cpp follows, sets digits apart first, so that the spaces stay together; the golden file's scores
// of these two items differ by up to 4 nats, as they would if the spaces were split. No other item differs.
TEST(TaskReference, LogLikelihoodsOnSmolLM2AreTheHarnesss) {
  QUANTMAP_NEEDS(smollm2());
  const auto golden_file = testing::shared_dir() / "data/reference-results/smollm2-tasks.json";
  QUANTMAP_NEEDS(golden_file);
  const Json golden = Json::parse(read_text_file(golden_file));
  const auto db = testing::fresh_dir("tasks") / "r.db";
  std::vector<std::string> arguments = {"eval", smollm2().string(), "--tasks"};
  for (const Json& task : golden["tasks"]) arguments.push_back(task["task"]);
  for (const char* word :
       {"--items", "0-199", "--schemes", "BF16", "--compute", "f32", "--quiet", "--format", "json", "--data"})
    arguments.emplace_back(word);
  arguments.push_back((testing::shared_dir() / "data").string());
  arguments.insert(arguments.end(), {"--db", db.string()});
  const testing::RunResult run = testing::run_quantmap(arguments);
  ASSERT_EQ(run.status, 0) << run.err;
  std::map<std::pair<std::string, std::int64_t>, std::vector<TaskItemRecord>> got;
  const Database results = Database::open(db);
  for (const TaskItemRecord& row : results.task_items(1, 0)) got[{row.task, row.item}].push_back(row);
  const std::set<std::pair<std::string, std::int64_t>> spaces_before_digits = {{"piqa", 139}, {"piqa", 142}};
  std::int64_t compared = 0;
  for (const Json& task : golden["tasks"]) {
    const std::string name = task["task"];
    for (const Json& item : task["results"]) {
      const std::int64_t index = item["item"];
      const auto& rows = got[{name, index}];
      ASSERT_EQ(rows.size(), item["loglikelihoods"].size()) << name << " " << index;
      for (std::size_t c = 0; c < rows.size(); ++c) {
        EXPECT_EQ(rows[c].greedy, item["greedy"][c].get<bool>()) << name << " " << index;
        if (spaces_before_digits.contains({name, index})) continue;
        EXPECT_NEAR(rows[c].loglikelihood.value(), item["loglikelihoods"][c].get<double>(), 1e-3)
            << name << " " << index << " choice " << c;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 3399 - 4);
  for (const TaskScoreRecord& score : results.task_scores(1))
    for (const Json& task : golden["tasks"]) {
      if (task["task"] != score.task) continue;
      EXPECT_NEAR(score.acc.value(), task["acc"].get<double>(), 1e-12) << score.task;
      if (task.contains("acc_norm") && !task["acc_norm"].is_null()) {
        EXPECT_NEAR(score.acc_norm.value(), task["acc_norm"].get<double>(), 1e-12) << score.task;
      }
    }
}

}  // namespace
}  // namespace quantmap
