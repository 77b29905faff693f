// What is written is what is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/error.hpp"
#include "sample.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class Records : public ::testing::Test {
 protected:
  std::filesystem::path file_ = fresh_dir("store_records") / "r.db";
  Database db_ = Database::open(file_);

  std::int64_t start(int schemes = 3) { return db_.start_run(filled<RunRecord>(7), sample_schemes(schemes)); }
};

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(Records, ARunReadsBackAsItWasWrittenAndIsRunning) {
  RunRecord given = filled<RunRecord>(7);
  const std::int64_t id = start();
  ASSERT_TRUE(db_.run(id));
  given.status = "running";  // whatever the caller said
  EXPECT_TRUE(same(*db_.run(id), given));
  EXPECT_EQ(db_.run(id)->id, id);
  const auto schemes = db_.schemes(id);
  ASSERT_EQ(schemes.size(), 3u);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(same(schemes[static_cast<std::size_t>(i)], sample_schemes(3)[static_cast<std::size_t>(i)]));
}

TEST_F(Records, AKeyMeasuredTwiceIsTwoRunsAndTheNewestIsFound) {
  const std::string key = filled<RunRecord>(7).key;
  EXPECT_FALSE(db_.find_run(key));
  const std::int64_t first = start();
  const std::int64_t second = start();
  EXPECT_NE(first, second);
  EXPECT_EQ(db_.find_run(key)->id, second);
  EXPECT_TRUE(db_.run(first));
  EXPECT_FALSE(db_.run(second + 1));
  EXPECT_FALSE(db_.find_run("another key"));
}

TEST_F(Records, AllRunsComeByNumber) {
  EXPECT_TRUE(db_.runs().empty());
  const std::int64_t first = start(), second = start();
  const auto runs = db_.runs();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].id, first);
  EXPECT_EQ(runs[1].id, second);
  EXPECT_EQ(runs[1].model, filled<RunRecord>(7).model);
}

TEST_F(Records, FinalRowsReadBackInTheOrderGivenToTheBit) {
  const std::int64_t id = start();
  std::vector<EvaluationRecord> evaluations;
  for (int i = 0; i < 3; ++i) {
    evaluations.push_back(filled<EvaluationRecord>(i));
    evaluations.back().scheme = sample_schemes(3)[static_cast<std::size_t>(i)];
  }
  evaluations[0].notes = {"a note", "\"quoted\"\nand more", ""};
  evaluations[1].kl_p999.reset();
  evaluations[1].kl_max = std::numeric_limits<double>::denorm_min();
  evaluations[2].kl_max = std::numeric_limits<double>::max();
  evaluations[2].kl_mean = 0.1 + 0.2;  // needs all 17 digits
  std::vector<LayerErrorRecord> errors;
  for (int i = 0; i < 20; ++i) {
    errors.push_back(filled<LayerErrorRecord>(i));
    errors.back().scheme_position = i % 3;
    errors.back().layer = 19 - i / 2;  // pairs share a site, and layers go down: not the order of any key
    errors.back().site = "model.layers." + std::to_string(19 - i / 2) + " output";
  }
  std::vector<ComparisonRecord> comparisons;
  for (const auto& [metric, position, than] : {std::tuple("ln_ppl_ratio", 1, 0),
                                               {"ln_ppl_ratio", 2, 0},
                                               {"ln_ppl_ratio", 2, 1},
                                               {"kl_mean", 2, 1}}) {
    comparisons.push_back(filled<ComparisonRecord>(10 * position + than));
    comparisons.back().position = position;
    comparisons.back().than = than;
    comparisons.back().metric = metric;
    comparisons.back().scheme = sample_schemes(3)[static_cast<std::size_t>(position)].scheme;
    comparisons.back().than_scheme = sample_schemes(3)[static_cast<std::size_t>(than)].scheme;
  }
  comparisons[1].more_windows.reset();
  db_.finish_run(id, "2025-01-02T03:04:05Z", evaluations, errors, comparisons);

  const auto read_comparisons = db_.comparisons(id);
  ASSERT_EQ(read_comparisons.size(), comparisons.size());
  for (std::size_t i = 0; i < comparisons.size(); ++i)
    EXPECT_TRUE(same(read_comparisons[i], comparisons[i])) << i;
  const auto read = db_.evaluations(id);
  ASSERT_EQ(read.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(same(read[i], evaluations[i])) << i;
    EXPECT_EQ(read[i].notes, evaluations[i].notes);
  }
  const auto read_errors = db_.layer_errors(id);
  ASSERT_EQ(read_errors.size(), errors.size());
  for (std::size_t i = 0; i < errors.size(); ++i) EXPECT_TRUE(same(read_errors[i], errors[i])) << i;
  EXPECT_EQ(db_.run(id)->status, "complete");
  EXPECT_EQ(db_.run(id)->finished_at, "2025-01-02T03:04:05Z");
}

TEST_F(Records, NotesAreAJsonArrayInTheView) {
  const std::int64_t id = start(2);
  auto row = filled<EvaluationRecord>(0);
  row.scheme.position = 0;
  row.notes = {"one", "two \"quoted\""};
  auto bare = filled<EvaluationRecord>(1);
  bare.scheme.position = 1;
  bare.notes = {};
  db_.finish_run(id, "", std::vector{row, bare}, {});
  const Table table = query_database(file_, "SELECT notes FROM evaluations ORDER BY position");
  EXPECT_EQ(std::get<std::string>(table.rows[0][0]), R"(["one","two \"quoted\""])");
  EXPECT_EQ(std::get<std::string>(table.rows[1][0]), "[]");
}

TEST_F(Records, PassesAndStatesReadBackByteForByte) {
  const std::int64_t id = start(3);
  db_.store_pass(id, sample_windows(3, 0, 2), sample_states(3, std::string("a\0b", 3)), {});
  db_.store_pass(id, sample_windows(3, 2, 2), sample_states(3, ""), {});
  EXPECT_EQ(db_.stored_windows(id), 4);
  const auto windows = db_.windows(id, 1);
  ASSERT_EQ(windows.size(), 4u);
  for (std::int64_t w = 0; w < 4; ++w) {
    EXPECT_EQ(windows[static_cast<std::size_t>(w)].window, w);
    EXPECT_EQ(windows[static_cast<std::size_t>(w)].tokens, std::string("\0bytes\xFF", 7) + std::to_string(w));
    EXPECT_EQ(windows[static_cast<std::size_t>(w)].sums, "1");
  }
  ASSERT_EQ(db_.states(id).size(), 3u);  // the last state alone
  for (const StateRecord& state : db_.states(id)) EXPECT_EQ(state.state, "");
  db_.finish_run(id, "", {}, {});
  EXPECT_TRUE(db_.states(id).empty());
  EXPECT_EQ(db_.stored_windows(id), 4);
}

TEST_F(Records, OutliersReadBackInTheOrderGiven) {
  const std::int64_t id = start();
  std::vector<OutlierRecord> outliers;
  outliers.reserve(6);
  for (int i = 0; i < 6; ++i) outliers.push_back(filled<OutlierRecord>(6 - i));
  outliers[3].layer = outliers[2].layer;  // one site in two windows
  outliers[3].site = outliers[2].site;
  db_.store_pass(id, {}, {}, std::span(outliers).first(3));
  db_.store_pass(id, {}, {}, std::span(outliers).last(3));
  const auto read = db_.outliers(id);
  ASSERT_EQ(read.size(), outliers.size());
  for (std::size_t i = 0; i < read.size(); ++i) EXPECT_TRUE(same(read[i], outliers[i])) << i;
}

TEST_F(Records, StoredWindowsCountsFromZeroWithoutHolesForEveryScheme) {
  const std::int64_t id = start(2);
  EXPECT_EQ(db_.stored_windows(id), 0);
  db_.store_pass(id, sample_windows(2, 1, 1), {}, {});
  EXPECT_EQ(db_.stored_windows(id), 0) << "window 0 is missing";
  db_.store_pass(id, std::vector<WindowRecord>{{0, 0, "", ""}}, {}, {});
  EXPECT_EQ(db_.stored_windows(id), 0) << "window 0 is missing for scheme 1";
  db_.store_pass(id, std::vector<WindowRecord>{{1, 0, "", ""}}, {}, {});
  EXPECT_EQ(db_.stored_windows(id), 2);
  EXPECT_EQ(db_.stored_windows(id + 1), 0);
}

TEST_F(Records, ANumberThatIsNotFiniteIsEmptyAndTheStatusSaysWhich) {
  const std::int64_t id = start(2);
  auto lost = filled<EvaluationRecord>(0);
  lost.scheme.position = 0;
  lost.status = "ok";
  lost.ppl = std::numeric_limits<double>::quiet_NaN();
  lost.kl_max = std::numeric_limits<double>::infinity();
  auto reasoned = filled<EvaluationRecord>(1);
  reasoned.scheme.position = 1;
  reasoned.status = "nll overflows";
  reasoned.nll = -std::numeric_limits<double>::infinity();
  auto error = filled<LayerErrorRecord>(0);
  error.scheme_position = 0;
  error.status = "ok";
  error.rel_error = std::numeric_limits<double>::quiet_NaN();
  auto outlier = filled<OutlierRecord>(0);
  outlier.status = "ok";
  outlier.ratio = std::numeric_limits<double>::infinity();
  db_.store_pass(id, {}, {}, std::vector{outlier});
  db_.finish_run(id, "", std::vector{lost, reasoned}, std::vector{error});
  const auto rows = db_.evaluations(id);
  EXPECT_FALSE(rows[0].ppl);
  EXPECT_FALSE(rows[0].kl_max);
  EXPECT_EQ(rows[0].kl_mean, lost.kl_mean);
  EXPECT_EQ(rows[0].status, "ppl is not finite (nan); kl_max is not finite (inf)");
  EXPECT_EQ(rows[1].status, "nll overflows; nll is not finite (-inf)");
  EXPECT_EQ(db_.layer_errors(id)[0].status, "rel_error is not finite (nan)");
  EXPECT_EQ(db_.outliers(id)[0].status, "ratio is not finite (inf)");
}

TEST_F(Records, MinusZeroIsTheOneDoubleThatLosesItsSign) {
  const std::int64_t id = start(1);
  auto row = filled<EvaluationRecord>(0);
  row.scheme.position = 0;
  row.nll = -0.0;
  row.ln_ppl_ratio = -std::numeric_limits<double>::denorm_min();
  db_.finish_run(id, "", std::vector{row}, {});
  EXPECT_FALSE(std::signbit(*db_.evaluations(id)[0].nll));
  EXPECT_TRUE(std::signbit(*db_.evaluations(id)[0].ln_ppl_ratio));
}

TEST_F(Records, NothingOfARefusedWriteIsKept) {
  const std::int64_t id = start(2);
  db_.store_pass(id, sample_windows(2, 0, 2), sample_states(2, "good"), {});
  auto again = sample_windows(2, 2, 1);
  again.push_back({1, 1, "x", "x"});
  EXPECT_THAT(error_of([&] { db_.store_pass(id, again, sample_states(2, "bad"), {}); }),
              HasSubstr("window 1 of scheme 1 in run 1: already stored"));
  EXPECT_THAT(error_of([&] {
                db_.store_pass(id, std::vector<WindowRecord>{{5, 9, "", ""}}, {}, {});
              }),
              HasSubstr("window 9 of scheme 5 in run 1: no such scheme"));
  EXPECT_EQ(db_.stored_windows(id), 2);
  EXPECT_EQ(db_.states(id)[0].state, "good");

  auto row = filled<EvaluationRecord>(0);
  row.scheme.position = 0;
  EXPECT_THAT(error_of([&] {
                db_.finish_run(id, "", std::vector{row, row}, {});
              }),
              HasSubstr("the evaluation of scheme 0 in run 1: already stored"));
  EXPECT_TRUE(db_.evaluations(id).empty());
  EXPECT_EQ(db_.run(id)->status, "running");
  auto error = filled<LayerErrorRecord>(0);
  error.scheme_position = 1;
  EXPECT_THAT(error_of([&] {
                db_.finish_run(id, "", {}, std::vector{error, error});
              }),
              HasSubstr("already stored"));
  EXPECT_TRUE(db_.layer_errors(id).empty());

  const std::int64_t before = start(1);
  EXPECT_THAT(error_of([&] { db_.start_run(filled<RunRecord>(1), std::vector<SchemeRecord>(2)); }),
              HasSubstr(file_.string()));
  EXPECT_EQ(start(1), before + 1) << "two schemes of one position: the run went with them";
}

TEST_F(Records, AFinishedRunNeverChanges) {
  const std::int64_t id = start(1);
  db_.finish_run(id, "", {}, {});
  EXPECT_THAT(error_of([&] { db_.finish_run(id, "", {}, {}); }),
              HasSubstr("expected running, found complete"));
  EXPECT_THAT(error_of([&] { db_.store_pass(id, sample_windows(1, 0, 1), {}, {}); }),
              HasSubstr("expected running, found complete"));
  EXPECT_THAT(error_of([&] { db_.store_pass(id + 1, {}, {}, {}); }), HasSubstr("found no such run"));
}

TEST_F(Records, TwoRunsShareSitesAndNothingElse) {
  const std::int64_t first = start(1);
  const std::int64_t second = start(1);
  auto error = filled<LayerErrorRecord>(0);
  error.scheme_position = 0;
  db_.finish_run(first, "", {}, std::vector{error});
  EXPECT_TRUE(db_.layer_errors(second).empty());
  db_.finish_run(second, "", {}, std::vector{error});
  EXPECT_EQ(db_.layer_errors(second).size(), 1u);
  const Table sites = query_database(file_, "SELECT count(*) FROM site");
  EXPECT_EQ(std::get<std::int64_t>(sites.rows[0][0]), 1);
}

}  // namespace
}  // namespace quantmap
