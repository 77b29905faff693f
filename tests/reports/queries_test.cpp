// The named questions, each on a database that holds an answer known here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "reports/queries.hpp"
#include "store/database.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SchemeRecord scheme(std::int64_t position, const char* name, const char* w, const char* a, const char* kv,
                    const std::string& spec) {
  return {position, name, spec, w, a, kv};
}

EvaluationRecord evaluation(const SchemeRecord& scheme, Number kl, Number bytes, Number kv_bytes) {
  EvaluationRecord row;
  row.scheme = scheme;
  row.kl_mean = kl;
  row.weight_bytes = bytes;
  row.kv_bytes_per_token = kv_bytes;
  return row;
}

LayerErrorRecord error(std::int64_t position, std::int64_t layer, const std::string& site, Number median,
                       Number pooled) {
  LayerErrorRecord row;
  row.scheme_position = position;
  row.layer = layer;
  row.site = site;
  row.scope = "total";
  row.kind = "output";
  row.row_error_p50 = median;
  row.rel_error = pooled;
  return row;
}

class NamedQueries : public ::testing::Test {
 protected:
  std::filesystem::path file_ = fresh_dir("reports_queries") / "r.db";

  void SetUp() override {
    Database db = Database::open(file_);
    RunRecord run;
    run.command = "eval";
    run.model = "tiny";
    const std::vector<SchemeRecord> schemes = {
        scheme(0, "BF16", "bf16", "bf16", "bf16", "w=bf16,a=bf16,kv=bf16"),
        scheme(1, "NF4", "nf4", "bf16", "bf16", "w=nf4,a=bf16,kv=bf16"),
        scheme(2, "W8A16", "int8:channel", "bf16", "bf16", "w=int8:channel,a=bf16,kv=bf16"),
        scheme(3, "NF4+KVFP8", "nf4", "bf16", "fp8_e4m3:tensor", "w=nf4,a=bf16,kv=fp8_e4m3:tensor"),
        scheme(4, "broken", "int4:g128", "int4:token", "bf16", "w=int4:g128,a=int4:token,kv=bf16"),
        scheme(5, "apart", "bf16", "bf16", "k=int8:token,v=bf16", "w=bf16,a=bf16,k=int8:token,v=bf16"),
        scheme(6, "@r.json", "mixed", "bf16", "int8:token", "recipe:1234"),
    };
    const auto old = db.start_run(run, schemes);  // an earlier run with other numbers
    db.finish_run(old, "", std::vector{evaluation(schemes[0], 0.0, 1.0, 1.0)},
                  std::vector{error(0, 0, "old", 1, 1)});

    OutlierShareRecord large, small, none;
    large.scheme_position = small.scheme_position = none.scheme_position = 4;
    large.site = "model.layers.1 output";
    small.site = "model.layers.0 output";
    none.site = "model.layers.2 output";
    large.layer = 1;
    small.layer = 0;
    none.layer = 2;
    large.error2 = 9.0;
    small.error2 = 0.5;
    large.massive_values = 0.25;
    db.store_run(run, schemes, {}, {}, std::vector{small, none, large});

    run.model = "tiny again";
    const auto latest = db.start_run(run, schemes);
    std::vector<OutlierRecord> outliers;
    for (std::int64_t window = 0; window < 3; ++window) {
      outliers.push_back({11, "model.layers.11 output", window, 0, 507,
                          -1000.0 * static_cast<double>(window + 1), 0.5, 4000.0, window > 0, "ok"});
      outliers.push_back({2, "model.layers.2 output", window, 5, 3, 7.0 - static_cast<double>(window), 0.5,
                          14.0, false, "ok"});
    }
    db.store_pass(latest, {}, {}, outliers);
    std::vector<LayerErrorRecord> errors;
    for (std::int64_t layer = 0; layer < 12; ++layer) {
      errors.push_back(error(1, layer, "model.layers." + std::to_string(layer) + " output",
                             0.01 * static_cast<double>(layer), 0.5));
      errors.push_back(error(1, layer, "model.layers." + std::to_string(layer) + ".mlp.down_proj output",
                             0.2 + 0.01 * static_cast<double>(layer), 0.1));
    }
    errors.push_back(error(4, 0, "model.layers.0 output", std::nullopt, std::nullopt));
    errors.push_back(error(4, 1, "model.layers.1 output", 0.9, 0.9));
    errors.push_back(error(1, -1, "all", 0.9, 0.9));  // neither a place
    errors.push_back(error(1, 4, "model.layers.4.self_attn attention_weights", 9, 9));
    errors.back().kind = "attention_weights";  // nor a relative error
    db.finish_run(
        latest, "2025-01-01T00:00:00Z",
        std::vector{evaluation(schemes[0], 0.0, 100.0, 64.0), evaluation(schemes[1], 0.2, 30.0, 64.0),
                    evaluation(schemes[2], 0.01, 55.0, 64.0), evaluation(schemes[3], 0.25, 30.0, 32.0),
                    evaluation(schemes[4], std::nullopt, 25.0, 64.0),
                    evaluation(schemes[5], 0.001, 100.0, 48.0), evaluation(schemes[6], 0.4, 40.0, 32.0)},
        errors);
    run.model = "unfinished";
    db.start_run(run, schemes);
  }

  static std::vector<Parameter> unset(const NamedQuery& query) {
    std::vector<Parameter> all;
    for (const QueryParameter& one : query.parameters) all.push_back({std::string(one.name), {}});
    return all;
  }
  // set: in place of null
  Table ask(std::string_view name, const std::vector<Parameter>& set = {}) {
    const NamedQuery* query = find_query(name);
    if (!query) throw std::runtime_error(std::string(name));
    std::vector<Parameter> all = unset(*query);
    for (const Parameter& given : set)
      std::find_if(all.begin(), all.end(), [&](const Parameter& p) { return p.name == given.name; })->value =
          given.value;
    return query_database(file_, query->sql, all);
  }
  static std::vector<std::string> texts(const Table& table, const std::string& column) {
    std::vector<std::string> values;
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      if (table.columns[c].name == column)
        for (const auto& row : table.rows)
          values.push_back(std::holds_alternative<std::string>(row[c]) ? std::get<std::string>(row[c])
                           : std::holds_alternative<std::int64_t>(row[c])
                               ? std::to_string(std::get<std::int64_t>(row[c]))
                           : std::holds_alternative<double>(row[c]) ? fmt_double(std::get<double>(row[c]))
                                                                    : "null");
    return values;
  }
  static std::string fmt_double(double value) {
    std::ostringstream text;
    text << value;
    return text.str();
  }
};

TEST_F(NamedQueries, EachHasAQuestionAndAnAnswer) {
  std::set<std::string_view> names;
  for (const NamedQuery& query : named_queries()) {
    EXPECT_TRUE(names.insert(query.name).second) << query.name;
    EXPECT_FALSE(query.question.empty()) << query.name << ": the first line is no comment";
    EXPECT_LE(query.question.size(), 110u) << query.name;
    // These need what this database does not hold: evidence_queries_test.cpp.
    const std::set<std::string_view> elsewhere = {"comparisons", "format_ranking", "metric_predicts_kl",
                                                  "tasks", "tasks_follow_kl"};
    EXPECT_EQ(ask(query.name).rows.empty(), elsewhere.count(query.name) == 1) << query.name;
    EXPECT_EQ(find_query(query.name), &query);
  }
  EXPECT_THAT(names, ElementsAre("best", "comparisons", "error_growth", "format_ranking", "kv", "latest",
                                 "layers", "metric_predicts_kl", "outlier_shares", "outliers", "pareto",
                                 "runs", "tasks", "tasks_follow_kl", "worst_layers"));
  EXPECT_EQ(find_query("no such query"), nullptr);
}

TEST_F(NamedQueries, OutlierSharesComeByTheSquaredErrorTheUndefinedLast) {
  const Table table = ask("outlier_shares");
  EXPECT_THAT(texts(table, "layer"), ElementsAre("1", "0", "2"));
  EXPECT_THAT(texts(table, "massive_values"), ElementsAre("0.25", "null", "null"));
  EXPECT_THAT(texts(table, "scheme"), ElementsAre("broken", "broken", "broken"));
}

TEST_F(NamedQueries, EachAnswersAnEmptyDatabaseWithNoRows) {
  const auto empty = fresh_dir("reports_empty") / "r.db";
  Database::open(empty);
  for (const NamedQuery& query : named_queries()) {
    const Table table = query_database(empty, query.sql, unset(query));
    EXPECT_TRUE(table.rows.empty()) << query.name;
    EXPECT_FALSE(table.columns.empty()) << query.name;
  }
}

TEST_F(NamedQueries, RunsListsUnfinishedOnesToo) {
  const Table table = ask("runs");
  EXPECT_THAT(texts(table, "model"), ElementsAre("tiny", "tiny", "tiny again", "unfinished"));
  EXPECT_THAT(texts(table, "status"), ElementsAre("complete", "complete", "complete", "running"));
}

TEST_F(NamedQueries, LatestIsTheLastCompleteRunInItsOrder) {
  const Table table = ask("latest");
  EXPECT_THAT(texts(table, "run"), ::testing::Each("3"));
  EXPECT_THAT(texts(table, "scheme"),
              ElementsAre("BF16", "NF4", "W8A16", "NF4+KVFP8", "broken", "apart", "@r.json"));
}

TEST_F(NamedQueries, BestSortsByKlAndPutsUndefinedLast) {
  EXPECT_THAT(texts(ask("best"), "scheme"),
              ElementsAre("BF16", "apart", "W8A16", "NF4", "NF4+KVFP8", "@r.json", "broken"));
}

TEST_F(NamedQueries, KvComparesWithTheSameSchemeWithoutACacheFormat) {
  const Table table = ask("kv");
  EXPECT_THAT(texts(table, "scheme"), ElementsAre("apart", "@r.json", "NF4+KVFP8"));
  EXPECT_THAT(texts(table, "kl_bf16_kv"),
              ElementsAre("0", "null", "0.2"));  // a recipe has no counterpart by name
  EXPECT_THAT(texts(table, "bytes_bf16_kv"), ElementsAre("64", "null", "64"));
}

TEST_F(NamedQueries, LayersFollowTheResidualStream) {
  const Table table = ask("layers");
  std::vector<std::string> expected;
  for (int layer = 0; layer < 12; ++layer)
    expected.push_back(std::to_string(layer));  // 10 after 9, not after 1
  expected.insert(expected.end(), {"0", "1"});
  EXPECT_THAT(texts(table, "layer"), ::testing::ElementsAreArray(expected));
  EXPECT_EQ(texts(table, "scheme").front(), "NF4");
}

TEST_F(NamedQueries, WorstLayersAreFiveOfEachSchemeAndUndefinedOnesLast) {
  const Table table = ask("worst_layers");
  EXPECT_THAT(texts(table, "layer"), ElementsAre("11", "10", "9", "8", "7", "1", "0"));
  EXPECT_THAT(texts(table, "scheme"), ElementsAre("NF4", "NF4", "NF4", "NF4", "NF4", "broken", "broken"));
  EXPECT_THAT(texts(table, "rank"), ElementsAre("1", "2", "3", "4", "5", "1", "2"));
  EXPECT_THAT(texts(table, "site").front(), HasSubstr("down_proj"));
}

TEST_F(NamedQueries, OutliersGiveEachPlaceOnceWithItsLargestValue) {
  const Table table = ask("outliers");
  EXPECT_THAT(texts(table, "site"), ElementsAre("model.layers.11 output", "model.layers.2 output"));
  EXPECT_THAT(texts(table, "value"), ElementsAre("-3000", "7"));
  EXPECT_THAT(texts(table, "windows_massive"), ElementsAre("2", "0"));
  EXPECT_THAT(texts(table, "windows_seen"), ElementsAre("3", "3"));
  EXPECT_THAT(texts(table, "channel"), ElementsAre("507", "3"));
}

}  // namespace
}  // namespace quantmap
