// Asking the database from the command line, and opening it with what people have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/paths.hpp"
#include "support/run.hpp"

namespace quantmap {
namespace {

using testing::demo_dir;
using testing::fresh_dir;
using ::testing::HasSubstr;
using testing::run;
using testing::run_quantmap;
using testing::RunResult;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

std::string measured(const char* name) {
  const auto dir = fresh_dir(name);
  const RunResult r =
      run_quantmap({"eval", demo_dir().string(), "--text", (demo_dir() / "text.txt").string(), "--ctx", "64",
                    "--windows", "3", "--schemes", "W8A16", "NVFP4", "--quiet"},
                   dir.string());
  EXPECT_EQ(r.status, 0) << r.err;
  return dir.string();
}

TEST(QueryCommand, ParametersNarrowANamedQuestion) {
  const std::string dir = measured("query_parameters");
  const auto schemes = [&](const Words& set) {
    Words words = {"query", "best", "--format", "json"};
    if (!set.empty()) words.emplace_back("--set");
    words.insert(words.end(), set.begin(), set.end());
    const RunResult r = run_quantmap(words, dir);
    EXPECT_EQ(r.status, 0) << r.err;
    Words found;
    for (const Json& row : Json::parse(r.out)) found.push_back(row["scheme"]);
    return found;
  };
  EXPECT_EQ(schemes({}), (Words{"BF16", "W8A16", "NVFP4"}));
  EXPECT_EQ(schemes({"max_bpw=12"}), (Words{"W8A16", "NVFP4"}));
  EXPECT_EQ(schemes({"max_bpw=12", "run=2"}), Words{});
  const RunResult sql =
      run_quantmap({"query", "--sql", "SELECT scheme FROM evaluations WHERE scheme = :s AND run = :r",
                    "--set", "s=NVFP4", "r=1", "--format", "csv"},
                   dir);
  EXPECT_EQ(sql.out, "scheme\r\nNVFP4\r\n") << sql.err;
}

TEST(QueryCommand, EachMistakeIsOneClearLine) {
  const std::string dir = measured("query_mistakes");
  struct Row {
    Words words;
    const char* says;
  };
  const Row kRows[] = {
      {{"best", "--set", "run"}, "expected PARAMETER=VALUE"},
      {{"best", "--set", "=3"}, "expected PARAMETER=VALUE"},
      {{"best", "--set", "run=1", "run=2"}, "set twice"},
      {{"best", "--set", "run=x"}, "is no integer"},
      {{"best", "--set", "max_gib=much"}, "is no number"},
      {{"best", "--set", "size=3"}, "it has run, max_gib, max_bpw, tokens"},
      {{"runs", "--set", "run=3"}, "it has none"},
      {{"--set", "run=3"}, "only with a NAME or --sql"},
      {{"--sql", "SELECT :x"}, "no value for the parameter :x"},
      {{"--sql", "SELECT 1", "--set", "x=1"}, "no parameter :x"},
      {{"--sql", "SELECT ?"}, "without a name"},
      {{"--sql", "DELETE FROM run"}, "only reading is allowed"},
      {{"worst"}, "the questions are"},
  };
  for (const Row& row : kRows) {
    Words words = {"query"};
    words.insert(words.end(), row.words.begin(), row.words.end());
    const RunResult r = run_quantmap(words, dir);
    EXPECT_EQ(r.status, 2) << r.err;
    EXPECT_THAT(r.err, HasSubstr(row.says));
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_EQ(r.out, "");
  }
}

// An old schema is migrated by whatever opens the file first, and the old file stays beside it.
TEST(QueryCommand, AnOldDatabaseIsMigratedAndKept) {
  if (run({"sqlite3", "--version"}).status != 0) GTEST_SKIP() << "needs sqlite3";
  const auto dir = fresh_dir("query_old");
  const auto file = (dir / "quantmap.db").string();
  const auto schema = (testing::source_dir() / "tests/golden/store/schema_v1.sql").string();
  ASSERT_EQ(run({"sqlite3", file, ".read " + schema}).status, 0);
  const RunResult r = run_quantmap({"query", "runs"}, dir.string());
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("the old file is kept as quantmap.db.v1"));
  EXPECT_EQ(run({"sqlite3", file + ".v1", "PRAGMA user_version"}).out, "1\n");
  const RunResult again = run_quantmap({"query", "runs"}, dir.string());
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(again.err, "");
}

// Python with the packages of tests/python/requirements.txt (scripts/test puts them into build/python).
Words python_with(const char* modules) {
  const auto folder = std::filesystem::path(QUANTMAP_BINARY).parent_path() / "python";
  for (const char* name : {"python3", "/usr/bin/python3"}) {
    Words words = {"env", "PYTHONPATH=" + folder.string(), name};
    Words probe = words;
    probe.insert(probe.end(), {"-c", std::string("import ") + modules});
    if (run(probe).status == 0) return words;
  }
  return {};
}

TEST(Database, OpensInPandas) {
  Words words = python_with("pandas");
  if (words.empty()) GTEST_SKIP() << "needs pandas";
  const std::string dir = measured("query_pandas");
  words.insert(words.end(), {"-c",
                             "import pandas, sqlite3\n"
                             "db = sqlite3.connect('quantmap.db')\n"
                             "f = pandas.read_sql('SELECT * FROM evaluations', db)\n"
                             "assert f.kl_mean.dtype == 'float64' and f.windows.dtype == 'int64', f.dtypes\n"
                             "for v in ('runs', 'comparisons', 'layer_errors', 'outliers', 'schemes'):\n"
                             "  assert len(pandas.read_sql('SELECT * FROM ' + v, db)) > 0, v\n"
                             "print(list(f.scheme), f.kl_mean[0])"});
  const RunResult r = run(words, dir);
  EXPECT_EQ(r.out, "['BF16', 'W8A16', 'NVFP4'] 0.0\n") << r.err;
}

TEST(Database, OpensInDatasette) {
  Words words = python_with("datasette");
  if (words.empty()) GTEST_SKIP() << "needs datasette";
  const std::string dir = measured("query_datasette");
  words.insert(words.end(), {"-m", "datasette", "quantmap.db", "--get",
                             "/quantmap/evaluations.json?_shape=array&_sort=position"});
  const RunResult r = run(words, dir);
  ASSERT_EQ(r.status, 0) << r.err;
  const Json rows = Json::parse(r.out);
  const Json ours = Json::parse(
      run_quantmap({"query", "--sql", "SELECT * FROM evaluations ORDER BY position", "--format", "json"}, dir)
          .out);
  ASSERT_EQ(rows.size(), 3U);
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (const char* column : {"scheme", "kl_mean", "kl_stderr", "ppl", "windows", "notes"})
      EXPECT_EQ(rows[i][column], ours[i][column]) << column;
}

}  // namespace
}  // namespace quantmap
