// `report`: which sentence, which runs, and that text from files stays text. The page itself is opened in
// tests/page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "reports/answer.hpp"
#include "reports/evaluation.hpp"
#include "reports/report_page.hpp"
#include "store/database.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

constexpr double kMiB = 1 << 20;
constexpr const char* kAlert = "<script>alert(1)</script>";

EvaluationRecord row(std::int64_t position, const char* name, Number kl, Number kl_stderr, double mib,
                     double kv = 2048) {
  EvaluationRecord e;
  e.scheme = {position, name, std::string("spec of ") + name, "w", "a", "kv"};
  e.kl_mean = kl;
  e.kl_stderr = kl_stderr;
  e.weight_bytes = mib * kMiB;
  e.kv_bytes_per_token = kv;
  e.windows = 30;
  e.tokens_scored = 3000;
  return e;
}

ReportEvaluation evaluation(std::vector<EvaluationRecord> rows) {
  ReportEvaluation one;
  one.rows = {row(0, "BF16", 0, 0, 100)};
  one.rows.insert(one.rows.end(), rows.begin(), rows.end());
  return one;
}

std::string first(const ReportEvaluation& one, double max_kl = kDefaultMaxKl) {
  return answer(one, max_kl).sentences.at(0);
}

std::string all(const ReportEvaluation& one) {
  std::string text;
  for (const std::string& sentence : answer(one, kDefaultMaxKl).sentences) text += sentence + "\n";
  return text;
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReportAnswer, IsTheSmallestSchemeWhoseUpperBoundIsBearable) {
  const auto one = evaluation(
      {row(1, "big", 0.001, 1e-5, 60), row(2, "small", 0.008, 1e-4, 30), row(3, "tiny", 0.05, 1e-4, 20)});
  EXPECT_THAT(first(one), StartsWith("Take small: 70 % fewer bytes of weights. It is the smallest of the 3 "
                                     "schemes whose KL stays below 0.01 nats per token"));
  EXPECT_EQ(answer(one, kDefaultMaxKl).pick, 2);
  EXPECT_EQ(answer(one, 0.1).pick, 3);
  EXPECT_EQ(answer(one, 0.005).pick, 1);
  EXPECT_THAT(all(one), HasSubstr("Least harm: big, KL 0.001000 ± 0.000010"));
}

TEST(ReportAnswer, AMeanBelowIsNotEnoughWhereItsErrorReachesOver) {
  // t(0.95, 29) = 1.6991: 0.009 + 1.6991 x 0.0007 = 0.0102.
  const auto one = evaluation({row(1, "unsure", 0.009, 0.0007, 30), row(2, "sure", 0.009, 0.0005, 60)});
  EXPECT_EQ(answer(one, kDefaultMaxKl).pick, 2);
  EXPECT_NEAR(*kl_upper_bound(one.rows[1]), 0.009 + 1.6991270265 * 0.0007, 1e-9);
}

TEST(ReportAnswer, KeepsTheReferenceWhereNothingIsBearableAndNamesTheClosest) {
  const auto one = evaluation({row(1, "far", 0.5, 0.01, 30), row(2, "near", 0.02, 0.001, 60)});
  EXPECT_THAT(first(one), StartsWith("Keep the reference: none of the 2 schemes stays below 0.01"));
  EXPECT_THAT(first(one), HasSubstr("near comes closest"));
  EXPECT_EQ(answer(one, kDefaultMaxKl).pick, -1);
}

TEST(ReportAnswer, SameBytesOfWeightsAreDecidedByTheCacheThenByKl) {
  auto one = evaluation({row(1, "W", 0.001, 1e-5, 50), row(2, "W+KV", 0.002, 1e-5, 50, 1024)});
  EXPECT_THAT(first(one), StartsWith("Take W+KV: 50 % fewer bytes of weights and 50 % fewer bytes of KV"));
  one.rows[2].kv_bytes_per_token = 2048;
  EXPECT_THAT(first(one), StartsWith("Take W: 50 % fewer bytes of weights. It"));
  one = evaluation({row(1, "larger", 0.001, 1e-5, 130)});
  EXPECT_THAT(first(one),
              StartsWith("Take larger: 30 % more bytes of weights. It is the smallest of the one"));
  one = evaluation({row(1, "same", 0.001, 1e-5, 100)});
  EXPECT_THAT(first(one), StartsWith("Take same: no fewer bytes."));
}

TEST(ReportAnswer, ASchemeWithoutAnUncertaintyOrWithAnInfiniteKlIsNeverTaken) {
  auto one = evaluation({row(1, "infinite", 0.001, 1e-5, 20), row(2, "finite", 0.002, 1e-5, 50)});
  one.rows[1].kl_infinite = 1;
  EXPECT_THAT(first(one), StartsWith("Take finite"));
  one.rows[2].kl_stderr = std::nullopt;
  EXPECT_THAT(first(one), StartsWith("Nothing can be recommended: a text of 30 windows leaves"));
  one.rows[0].windows = 1;
  EXPECT_THAT(first(one), StartsWith("Nothing can be recommended: one window leaves"));
  EXPECT_THAT(first(evaluation({})), StartsWith("No scheme was measured"));
  EXPECT_THAT(first(evaluation({row(1, "undefined", std::nullopt, std::nullopt, 20)})),
              StartsWith("No scheme was measured"));
}

TEST(ReportAnswer, SaysWhatTheDataDoNotTellApart) {
  auto one = evaluation({row(1, "a", 0.001, 1e-5, 60), row(2, "b", 0.0011, 1e-5, 50),
                         row(3, "c", 0.0012, 1e-5, 40), row(4, "d", 0.1, 1e-5, 30)});
  EXPECT_THAT(all(one), Not(HasSubstr("distinguishable"))) << "nothing was compared";
  const auto compared = [&](std::int64_t position, std::int64_t than, const char* metric,
                            const char* verdict) {
    ComparisonRecord c;
    c.position = position;
    c.than = than;
    c.metric = metric;
    c.verdict = verdict;
    one.comparisons.push_back(c);
  };
  compared(2, 1, "ln_ppl_ratio", "not distinguishable");
  compared(2, 1, "kl_mean", "higher");
  compared(3, 1, "kl_mean", "not distinguishable");  // no neighbours
  EXPECT_THAT(all(one), Not(HasSubstr("distinguishable")));
  compared(3, 2, "kl_mean", "not distinguishable");
  EXPECT_THAT(all(one), HasSubstr("Not distinguishable in KL: b and c (p 1 after Holm).\n"));
}

TEST(ReportAnswer, SaysWhatIsWithinTheNoiseFloorAndThatTheTextIsShort) {
  auto one = evaluation({row(1, "a", 0.0005, 1e-5, 60), row(2, kNoiseFloor, 0.0006, 1e-5, 100)});
  EXPECT_THAT(first(one), StartsWith("Take a"));
  EXPECT_THAT(all(one), HasSubstr("a is within the noise floor (KL 0.000600"));
  EXPECT_THAT(all(one), Not(HasSubstr("Only")));
  for (EvaluationRecord& e : one.rows) e.windows = 19;
  EXPECT_THAT(all(one), HasSubstr("Only 19 windows"));
}

TEST(ReportPage, ACodeIsTheValueToFourHundredthsOfAPercent) {
  for (double value = 1e-9; value < 1e9; value *= 1.37) {
    const std::uint16_t code = log_code(value);
    EXPECT_NEAR(std::exp2((code - 1) / 1024.0 - 32) / value, 1, 4e-4) << value;
  }
  EXPECT_EQ(log_code(0.0), 0);
  EXPECT_EQ(log_code(1.0), 1 + 32 * 1024);
  EXPECT_EQ(log_code(1e-300), 1) << "small, but not 0";
  EXPECT_EQ(log_code(1e300), 65534);
  for (const Number undefined : {Number(), Number(-1.0), Number(std::numeric_limits<double>::quiet_NaN()),
                                 Number(std::numeric_limits<double>::infinity())})
    EXPECT_EQ(log_code(undefined), 65535);
}

// Everything that comes from files is the same hostile text.
ReportData hostile(const std::string& text) {
  RunRecord run;
  run.id = 1;
  run.command = run.command_line = run.model = run.model_type = run.text = run.machine = text;
  run.notes = Json::array({text}).dump(-1, ' ', false, Json::error_handler_t::replace);
  run.first_ids = "[]";
  ReportData data;
  data.max_kl = kDefaultMaxKl;
  data.runs = {run};
  ReportEvaluation one = evaluation({row(1, text.c_str(), 0.001, 1e-5, 50)});
  one.run = run;
  one.rows[1].notes = {text};
  one.answer = answer(one, data.max_kl);
  data.evaluations = {one};
  LayerErrorRecord error;
  error.scheme_position = 1;
  error.layer = 0;
  error.site = "model.layers.0." + text + " output";
  error.scope = "local";
  error.kind = "output";
  error.row_error_p50 = 0.5;
  data.errors = {{run, {one.rows[0].scheme, one.rows[1].scheme}, {error}}};
  TaskScoreRecord score;
  score.scheme = score.task = score.status = text;
  data.tasks = {{run, {score}}};
  return data;
}

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

Json data_of(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const std::size_t from = page.find(open) + open.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(ReportPage, TextFromFilesIsNoMarkup) {
  const std::string page = report_html(hostile(kAlert));
  EXPECT_EQ(count(page, kAlert), 0u);
  EXPECT_EQ(count(page, "</script"), 3u) << "data, d3, the page's own";
  EXPECT_EQ(data_of(page)["runs"][0]["model"], kAlert) << "and it is still what it was";
  const std::string comment = report_html(hostile("<!--<script>"));
  EXPECT_EQ(count(comment, "<!--"), 0u);
  EXPECT_EQ(count(comment, "<script"), 3u);
}

TEST(ReportPage, ANameThatIsAPlaceOfThePageIsNotFilledIn) {
  const std::string plain = report_html(hostile("plain"));
  for (const std::string name : {"/*script*/", "/*d3*/", "/*style*/", "{data}"}) {
    const std::string page = report_html(hostile(name));
    EXPECT_EQ(data_of(page)["runs"][0]["model"], name);
    EXPECT_LT(page.size(), plain.size() + 1000);
  }
}

TEST(ReportPage, LineSeparatorsAndBytesThatAreNoUtf8DoNotBreakTheScript) {
  const std::string page = report_html(hostile("a\xE2\x80\xA8\xE2\x80\xA9 b\xFF"));
  EXPECT_EQ(count(page, "\xE2\x80\xA8"), 0u);
  EXPECT_EQ(data_of(page)["runs"][0]["model"], "a\u2028\u2029 b\uFFFD");
}

TEST(ReportPage, LoadsNothing) {
  const std::string page = report_html(hostile("plain"));
  const std::string own = page.substr(0, page.find("id=\"data\""));
  for (const std::string_view what : {" src=", "url(", "@import", "http:", "https:"})
    EXPECT_EQ(count(own, what), 0u) << what;
  EXPECT_EQ(count(page, " src="), 0u);
  EXPECT_THAT(own, HasSubstr("default-src 'none'"));
}

TEST(ReportPage, LayerErrorsArePackedSchemeBySchemeLayerByLayer) {
  ReportData data = hostile("s");
  LayerErrorRecord error = data.errors[0].rows[0];
  error.layer = 1;
  error.site = "model.layers.1.s output";
  error.row_error_p50 = 0;
  data.errors[0].rows.push_back(error);
  error.layer = -1;  // a sum over places
  error.site = "all";
  data.errors[0].rows.push_back(error);
  const Json errors = data_of(report_html(data))["errors"][0];
  EXPECT_EQ(errors["layers"], 2);
  ASSERT_EQ(errors["maps"].size(), 1u);
  const Json& map = errors["maps"][0];
  EXPECT_EQ(map["module"], "s");
  // 0xFFFF 0xFFFF of the reference, then 1 + 1024 x 31 = 0x7C01 of one half, and 0; low bytes first.
  EXPECT_EQ(map["metrics"], Json({{"row_error_p50", "/////wF8AAA="}}));
}

TEST(ReportText, MarkdownStartsWithTheAnswerAndHoldsNoMarkup) {
  const std::string text = report_text(hostile(kAlert), OutputFormat::md, 80);
  EXPECT_THAT(text, StartsWith("**Take &lt;script&gt;alert(1)&lt;/script&gt;: 50 % fewer bytes of weights."));
  EXPECT_THAT(text, Not(HasSubstr("<script")));
  EXPECT_THAT(text, HasSubstr("\n| scheme | KL (nats) |"));
  EXPECT_THAT(text, HasSubstr("**Where it hurts (run 1): relative error of the median row**"));
  EXPECT_THAT(text, HasSubstr("**Tasks (run 1)**"));
  EXPECT_THAT(text, HasSubstr("**Where the numbers come from**"));
  EXPECT_THAT(text, Not(HasSubstr("\n\n\n")));
}

TEST(ReportText, SaysWhatWasNotMeasured) {
  ReportData data = hostile("a");
  data.errors.clear();
  data.tasks.clear();
  data.evaluations.clear();
  EXPECT_THAT(report_text(data, OutputFormat::md, 80),
              StartsWith("- No scheme was evaluated in these runs.\n\n- No layer errors were measured.\n\n"
                         "- No tasks were measured.\n\n**Where"));
}

class ReportRuns : public ::testing::Test {
 protected:
  std::filesystem::path file_ = fresh_dir("reports_report") / "r.db";
  Database db_ = Database::open(file_);
  const std::vector<SchemeRecord> schemes_ = {{0, "BF16", "", "", "", ""}, {1, "W", "", "", "", ""}};

  static RunRecord run_of(const std::string& command, const std::string& model) {
    RunRecord run;
    run.command = command;
    run.model = run.model_sha256 = model;
    run.notes = run.first_ids = "[]";
    return run;
  }
  std::int64_t eval(const std::string& model, bool tasks = false) {
    const std::int64_t id = db_.start_run(run_of("eval", model), schemes_);
    EvaluationRecord reference, scheme = row(1, "W", 0.001, 1e-5, 50);
    reference.scheme = schemes_[0];
    TaskScoreRecord score;
    score.task = "t";
    score.acc = 0.5;
    if (tasks) db_.store_task_scores(id, std::vector{score});
    ComparisonRecord c;
    c.position = 1;
    c.metric = "kl_mean";
    c.verdict = "higher";
    db_.finish_run(id, "now", std::vector{reference, scheme}, {}, std::vector{c});
    return id;
  }
  std::int64_t error(const std::string& model) {
    LayerErrorRecord e;
    e.layer = 0;
    e.site = "model.layers.0 output";
    e.scope = "total";
    e.kind = "activation";
    return db_.store_run(run_of("error", model), schemes_, std::vector{e});
  }
  std::int64_t outliers(const std::string& model) {
    SiteStatisticsRecord s;
    s.layer = 0;
    s.site = "model.layers.0 output";
    return db_.store_run(run_of("outliers", model), schemes_, {}, std::vector{s}, {});
  }
  ReportData read(const std::vector<std::int64_t>& runs = {}) { return read_report(file_, runs, 0.01); }
  static std::vector<std::int64_t> ids(const ReportData& data) {
    std::vector<std::int64_t> found;
    for (const RunRecord& run : data.runs) found.push_back(run.id);
    return found;
  }
};

TEST_F(ReportRuns, WithoutRunsTheNewestEvaluationAndWhatIsKnownOfItsModel) {
  const auto tasks = eval("m", true);
  error("m");
  const auto errors = error("m");
  const auto spread = outliers("m");
  error("other");
  const auto main = eval("m");
  outliers("other");
  db_.start_run(run_of("eval", "m"), schemes_);  // never finished
  const ReportData data = read();
  EXPECT_THAT(ids(data), ElementsAre(tasks, errors, spread, main));
  ASSERT_EQ(data.errors.size(), 1u);
  ASSERT_EQ(data.outliers.size(), 1u);
  ASSERT_EQ(data.tasks.size(), 1u);
  ASSERT_EQ(data.evaluations.size(), 2u) << "the run of tasks has evaluations of its own";
  EXPECT_EQ(data.tasks[0].scores.at(0).acc, 0.5);
  EXPECT_EQ(data.evaluations[1].comparisons.at(0).verdict, "higher");
  EXPECT_THAT(data.evaluations[1].answer.sentences.at(0), StartsWith("Take W"));
}

TEST_F(ReportRuns, ErrorsAloneAreAReportToo) {
  const auto id = error("m");
  const ReportData data = read();
  EXPECT_THAT(ids(data), ElementsAre(id));
  EXPECT_THAT(data.evaluations, IsEmpty());
}

TEST_F(ReportRuns, NamedRunsAreThoseAndNoOthers) {
  const auto a = eval("m");
  error("m");
  const auto c = outliers("other");
  EXPECT_THAT(ids(read({c, a, a})), ElementsAre(a, c));
}

TEST_F(ReportRuns, RefusesWhatIsAbsentUnfinishedOrNoDatabase) {
  EXPECT_THAT(error_of([&] { read(); }), HasSubstr("nothing to report"));
  const auto done = eval("m");
  const auto open = db_.start_run(run_of("eval", "m"), schemes_);
  EXPECT_THAT(error_of([&] { read({done, open}); }), HasSubstr("run 2 (expected a complete run"));
  EXPECT_THAT(error_of([&] { read({9}); }),
              HasSubstr("no run 9 (expected a run of this database, found runs 1 to 2)"));
  EXPECT_THAT(error_of([&] { read_report(file_.parent_path() / "none.db", {}, 0.01); }),
              HasSubstr("none.db"));
  EXPECT_FALSE(std::filesystem::exists(file_.parent_path() / "none.db")) << "a report makes no database";
}

}  // namespace
}  // namespace quantmap
