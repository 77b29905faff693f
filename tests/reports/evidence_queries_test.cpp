// The named questions about evidence: each on numbers small enough to rank by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "reports/queries.hpp"
#include "store/database.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

using namespace testing;
using ::testing::ElementsAre;

class EvidenceQueries : public ::testing::Test {
 protected:
  // KL ranks 1 to 5. Errors: at `weight` in the same order; at `output` reversed.
  static constexpr double kKl[] = {0, 0.01, 0.02, 0.05, 0.1, 0.4};
  std::filesystem::path file_ = fresh_dir("reports_evidence") / "r.db";
  std::vector<SchemeRecord> schemes_;

  void SetUp() override {
    const char* formats[] = {"bf16", "int8:channel", "int4:g32", "int4:g128", "nf4", "int3:g128"};
    for (std::int64_t i = 0; i < 6; ++i)
      schemes_.push_back(
          {i, "s" + std::to_string(i), "w=" + std::string(formats[i]), formats[i], "bf16", "bf16"});
    Database db = Database::open(file_);
    RunRecord run;
    run.command = "eval";
    run.model_sha256 = "abc";
    const auto eval = db.start_run(run, schemes_);
    std::vector<EvaluationRecord> rows;
    std::vector<TaskScoreRecord> tasks;
    for (const SchemeRecord& s : schemes_) {
      EvaluationRecord& e = rows.emplace_back();
      const auto i = static_cast<std::size_t>(s.position);
      e.scheme = s;
      e.kl_mean = kKl[i];
      e.weight_bytes = 1000.0 - 100.0 * static_cast<double>(i);
      e.kv_bytes_per_token = 64.0;
      e.bpw_quantized = i == 0 ? Number() : Number(9.0 - static_cast<double>(i));
      e.bpw_model = 9.0;
      TaskScoreRecord t;
      t.scheme_position = s.position;
      t.task = "quiz";
      t.items = 100;
      t.acc = 0.6 - 0.01 * static_cast<double>(i);  // loses in the order of KL
      t.acc_norm = 0.5;                             // loses nothing: no ranks
      t.flips = i == 0 ? 0 : 10 - s.position;       // in the reverse order
      tasks.push_back(t);
    }
    ComparisonRecord c;
    c.position = 2;
    c.than = 1;
    c.metric = "kl_mean";
    c.difference = 0.01;
    c.verdict = "not distinguishable";
    c.more_windows = 40.0;
    db.store_task_scores(eval, tasks);
    db.finish_run(eval, "", rows, {}, std::vector{c});
    run.command = "error";
    std::vector<LayerErrorRecord> errors;
    for (std::int64_t position = 1; position < 6; ++position)
      for (std::int64_t layer = 0; layer < 2; ++layer) {
        LayerErrorRecord e;
        e.scheme_position = position;
        e.layer = layer;
        e.site = "model.layers." + std::to_string(layer) + ".mlp.down_proj weight";
        e.scope = "local";
        e.kind = "weight";
        e.row_error_p50 = 0.01 * static_cast<double>(position) + 0.001 * static_cast<double>(layer);
        e.rel_error = e.row_error_p50;
        errors.push_back(e);
        e.site = "model.layers." + std::to_string(layer) + ".mlp.down_proj output";
        e.kind = "output";
        e.row_error_p50 = 0.1 / static_cast<double>(position);
        errors.push_back(e);
        e.site = "model.layers." + std::to_string(layer) + " output";
        e.scope = "total";
        e.kind = "activation";
        e.row_error_p50 = 0.01 * static_cast<double>(position) * std::pow(3.0, static_cast<double>(layer));
        errors.push_back(e);
      }
    db.store_run(run, schemes_, errors);
  }

  Table ask(const char* name, const std::vector<Parameter>& set = {}) {
    const NamedQuery* query = find_query(name);
    std::vector<Parameter> all;
    for (const QueryParameter& one : query->parameters) {
      all.push_back({std::string(one.name), {}});
      for (const Parameter& given : set)
        if (given.name == one.name) all.back().value = given.value;
    }
    return query_database(file_, query->sql, all);
  }
  static Value at(const Table& table, std::size_t row, const std::string& column) {
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      if (table.columns[c].name == column) return table.rows.at(row)[c];
    throw std::runtime_error("no column " + column);
  }
  static double number(const Table& table, std::size_t row, const std::string& column) {
    return std::get<double>(at(table, row, column));
  }
  static std::vector<std::string> texts(const Table& table, const std::string& column) {
    std::vector<std::string> values;
    for (std::size_t r = 0; r < table.rows.size(); ++r)
      values.push_back(std::get<std::string>(at(table, r, column)));
    return values;
  }
};

TEST_F(EvidenceQueries, BestKeepsWhatFitsAndCountsTheCache) {
  EXPECT_EQ(ask("best").rows.size(), 6U);
  const double gib = 1073741824.0;
  EXPECT_THAT(texts(ask("best", {{"max_gib", 750.0 / gib}}), "scheme"), ElementsAre("s3", "s4", "s5"));
  EXPECT_THAT(texts(ask("best", {{"max_gib", 750.0 / gib}, {"tokens", std::int64_t{2}}}), "scheme"),
              ElementsAre("s4", "s5"));
}

TEST_F(EvidenceQueries, ParetoLeavesOutWhatAnotherBeats) {
  EXPECT_EQ(ask("pareto").rows.size(), 6U);  // each smaller scheme has more KL
  Database db = Database::open(file_);
  std::vector<EvaluationRecord> rows;
  for (const SchemeRecord& s : schemes_) {
    EvaluationRecord& e = rows.emplace_back();
    e.scheme = s;
    e.weight_bytes = 100.0;
    e.kv_bytes_per_token = 64.0;
    e.kl_mean = kKl[s.position];
  }
  db.finish_run(db.start_run({}, schemes_), "", rows, {});
  EXPECT_THAT(texts(ask("pareto"), "scheme"), ElementsAre("s0"));  // as small as all others, and exact
}

TEST_F(EvidenceQueries, ComparisonsNameWhatCannotBeToldApart) {
  const Table table = ask("comparisons");
  EXPECT_THAT(texts(table, "verdict"), ElementsAre("not distinguishable"));
  EXPECT_EQ(number(table, 0, "more_windows"), 40.0);
  EXPECT_TRUE(ask("comparisons", {{"metric", "ln_ppl_ratio"}}).rows.empty());
}

TEST_F(EvidenceQueries, ErrorGrowthIsTheFactorFromLayerToLayer) {
  const Table table = ask("error_growth");
  ASSERT_EQ(table.rows.size(), 5U);
  for (std::size_t row = 0; row < 5; ++row) {
    EXPECT_NEAR(number(table, row, "growth"), 3, 1e-12);
    EXPECT_NEAR(number(table, row, "ratio"), 3, 1e-12);
    EXPECT_NEAR(number(table, row, "step"), 3, 1e-12);
    EXPECT_EQ(std::get<std::int64_t>(at(table, row, "step_layer")), 1);
  }
  EXPECT_THAT(texts(table, "scheme"), ElementsAre("s1", "s2", "s3", "s4", "s5"));
}

TEST_F(EvidenceQueries, FormatRankingIsByTheMeanOverLayers) {
  const Table table = ask("format_ranking");
  ASSERT_EQ(table.rows.size(), 10U);  // 5 formats at the outputs, 5 at the weights
  EXPECT_EQ(std::get<std::string>(at(table, 0, "kind")), "output");
  EXPECT_EQ(std::get<std::string>(at(table, 0, "format")), "int3:g128 x bf16");
  EXPECT_EQ(std::get<std::string>(at(table, 5, "format")), "int8:channel");
  EXPECT_NEAR(number(table, 5, "error"), 0.0105, 1e-15);
  EXPECT_NEAR(number(table, 5, "worst_error"), 0.011, 1e-15);
  EXPECT_EQ(std::get<std::int64_t>(at(table, 5, "worst_layer")), 1);
  EXPECT_EQ(ask("format_ranking", {{"scope", "total"}}).rows.size(), 5U);
}

TEST_F(EvidenceQueries, TasksStandBesideKl) {
  const Table table = ask("tasks");
  ASSERT_EQ(table.rows.size(), 6U);
  EXPECT_THAT(texts(table, "scheme"), ElementsAre("s0", "s1", "s2", "s3", "s4", "s5"));
  EXPECT_NEAR(number(table, 5, "acc_change"), -0.05, 1e-12);
  EXPECT_TRUE(ask("tasks", {{"task", "none"}}).rows.empty());
}

TEST_F(EvidenceQueries, TasksFollowKlIsSpearmansRho) {
  const Table table = ask("tasks_follow_kl");
  ASSERT_THAT(texts(table, "lost"), ElementsAre("acc", "acc_norm", "flips"));
  EXPECT_NEAR(number(table, 0, "rho"), 1, 1e-12);
  EXPECT_EQ(at(table, 1, "rho"), Value());
  EXPECT_EQ(std::get<std::string>(at(table, 1, "status")), "undefined: all ranks are equal");
  EXPECT_NEAR(number(table, 2, "rho"), -1, 1e-12);
}

TEST_F(EvidenceQueries, TheCheapMetricIsRankedAgainstKl) {
  const Table table = ask("metric_predicts_kl");
  double weight = 0, output = 0;
  std::set<std::string> across;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    across.insert(std::get<std::string>(at(table, row, "across")));
    if (std::get<std::string>(at(table, row, "across")) != "all schemes" ||
        std::get<std::string>(at(table, row, "metric")) != "row_error_p50")
      continue;
    EXPECT_EQ(std::get<std::int64_t>(at(table, row, "schemes")), 5);
    const std::string kind = std::get<std::string>(at(table, row, "kind"));
    (kind == "weight" ? weight : output) += kind == "activation" ? 0 : number(table, row, "rho");
  }
  EXPECT_NEAR(weight, 1, 1e-12);
  EXPECT_NEAR(output, -1, 1e-12);
  EXPECT_EQ(across.size(), 1U);  // no bit budget holds three schemes …
  const Table budget = ask("metric_predicts_kl", {{"min_bpw", 3.0}, {"max_bpw", 7.0}});
  EXPECT_EQ(std::get<std::string>(at(budget, 0, "across")), "3 to 7 bits");  // … until one is given
  EXPECT_EQ(std::get<std::int64_t>(at(budget, 0, "schemes")), 4);
}

}  // namespace
}  // namespace quantmap
