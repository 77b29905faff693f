// Read-only SQL: what it gives and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/error.hpp"
#include "sample.hpp"
#include "support/paths.hpp"

namespace quantmap {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class Query : public ::testing::Test {
 protected:
  std::filesystem::path folder_ = fresh_dir("store_query");
  std::filesystem::path file_ = folder_ / "r.db";
  void SetUp() override {
    Database db = Database::open(file_);
    const auto run = db.start_run(filled<RunRecord>(1), sample_schemes(2));
    db.store_pass(run, sample_windows(2, 0, 1), {}, {});
  }
  Table ask(std::string_view sql) { return query_database(file_, sql); }
};

TEST_F(Query, GivesEachTypeAsItIs) {
  const Table table =
      ask("SELECT 42 AS i, 0.1 AS r, 'text' AS t, NULL AS n, x'0102ff' AS b, -9223372036854775808, '' ");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.columns[0].name, "i");
  EXPECT_EQ(table.rows[0], (std::vector<Value>{std::int64_t{42}, 0.1, "text", std::monostate(), "<3 bytes>",
                                               std::numeric_limits<std::int64_t>::min(), ""}));
  EXPECT_EQ(std::get<std::string>(ask("SELECT tokens FROM window").rows[0][0]), "<8 bytes>");
  EXPECT_TRUE(ask("SELECT run FROM runs WHERE run = 99").rows.empty());
  EXPECT_EQ(ask("SELECT run FROM runs WHERE run = 99").columns.size(), 1u);
}

TEST_F(Query, AllowsWhatReads) {
  for (const char* sql : {
           "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5) SELECT * FROM n",
           "EXPLAIN QUERY PLAN SELECT * FROM evaluations",
           "PRAGMA table_info(run)",
           "PRAGMA user_version",
           "SELECT * FROM pragma_table_info('evaluations')",
           "SELECT j.value FROM json_each('[1,2]') j",
           "VALUES (1), (2)",
           "-- a comment\nSELECT 1; -- and one after\n ; /* and more */ ;",
           "SELECT ';' AS semicolon",
           "SELECT sqrt(2), row_number() OVER (ORDER BY run) FROM runs",
       })
    EXPECT_FALSE(ask(sql).rows.empty()) << sql;
}

// A join gone wrong, or one that never ends, stops before it fills the memory.
TEST_F(Query, StopsAtMoreThanATableHolds) {
  try {
    ask("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
        "SELECT x a, x b, x c, x d, x e, x f, x g, x h FROM n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), HasSubstr("more than 4000000 values"));
  }
}

TEST_F(Query, RefusesEverythingElseBeforeItRuns) {
  struct Case {
    std::string sql;
    const char* says;
  };
  const auto elsewhere = (folder_ / "elsewhere.db").string();
  const std::vector<Case> cases = {
      {"INSERT INTO schema_version VALUES (2, 2)", "only reading is allowed"},
      {"INSERT INTO schema_version VALUES (2, 2) RETURNING version", "only reading is allowed"},
      {"UPDATE run SET model = 'x'", "only reading is allowed"},
      {"DELETE FROM run", "only reading is allowed"},
      {"DROP VIEW runs", "only reading is allowed"},
      {"CREATE TEMP TABLE t (x)", "only reading is allowed"},
      {"ATTACH '" + elsewhere + "' AS e", "only reading is allowed"},
      {"VACUUM INTO '" + elsewhere + "'", "returns no rows"},
      {"PRAGMA journal_mode = DELETE", "only reading is allowed"},
      {"PRAGMA user_version = 7", "only reading is allowed"},
      {"PRAGMA query_only = 0", "only reading is allowed"},
      {"PRAGMA wal_checkpoint", "only reading is allowed"},
      {"PRAGMA writable_schema = 1", "only reading is allowed"},
      {"SELECT load_extension('x')", "not authorized to use function: load_extension"},
      {"UPDATE sqlite_master SET sql = ''", "may not be modified"},
      {"SELECT \"no_such_column\" FROM runs", "no such column"},  // SQLite would take it for a text
      {"BEGIN", "only reading is allowed"},
      {"SELECT 1; DROP TABLE run", "only reading is allowed"},
      {"SELECT 1; SELECT 2", "more than one statement"},
      {"SELECT 1;;; SELECT 2", "more than one statement"},
      {"SELECT 1; nonsense", "syntax error"},
      {"", "no statement"},
      {" ; -- only a comment", "no statement"},
      {std::string("SELECT 1\0; DROP TABLE run", 25), "NUL byte"},
      {"SELECT no_such_column FROM runs", "no such column: no_such_column"},
      {"SELECT * FROM nowhere", "no such table: nowhere"},
      {"SELEC 1", "syntax error"},
      {"SELECT abs(-9223372036854775808)", "integer overflow"},  // found only while it runs
      {"SELECT \"\x1b[2J\nx\" FROM runs", "no such column"},
  };
  for (const Case& c : cases) {
    try {
      ask(c.sql);
      ADD_FAILURE() << "ran: " << c.sql;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << c.sql;
      EXPECT_THAT(error.what(), HasSubstr(c.says)) << c.sql;
      for (const char byte : std::string(error.what()))
        EXPECT_GE(static_cast<unsigned char>(byte), 0x20) << "one line without controls: " << c.sql;
    }
  }
  EXPECT_FALSE(std::filesystem::exists(elsewhere));
  EXPECT_EQ(Database::open(file_).run(1)->model, filled<RunRecord>(1).model);
}

}  // namespace
}  // namespace quantmap
