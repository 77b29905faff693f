// The schema: its views, its versions, and files that are not ours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "sample.hpp"
#include "store/schema.hpp"
#include "support/paths.hpp"
#include "support/run.hpp"

namespace quantmap {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

std::string contents(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

void execute(const std::filesystem::path& file, const std::string& sql) {
  SQLite::Database(file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec(sql);
}

Error error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::failed, "no error"};
}

Names columns(const std::filesystem::path& file, const std::string& view) {
  Names names;
  for (const Column& column : query_database(file, "SELECT * FROM " + view).columns)
    names.push_back(column.name);
  return names;
}

Names words(const std::string& text) {
  std::istringstream stream(text);
  Names all;
  for (std::string word; stream >> word;) all.push_back(word);
  return all;
}

// product.md's fields; `run` and `position` lead to the run and keep its order.
const std::vector<std::pair<std::string, std::string>> kViews = {
    {"runs",
     "run key command status command_line version git_revision machine device threads seed started_at "
     "finished_at model "
     "model_type model_sha256 tokenizer_sha256 text_sha256 token_ids_sha256 text protocol ctx stride windows "
     "score bos "
     "compute first_ids text_tokens dropped_tokens plan_windows notes"},
    {"evaluations",
     "run position scheme spec weights activations kv ppl ppl_stderr nll nll_stderr ln_ppl_ratio "
     "ln_ppl_ratio_stderr "
     "kl_mean kl_stderr kl_p50 kl_p90 kl_p99 kl_p999 kl_max kl_infinite tv_mean top1_agreement top1_stderr "
     "margin_flips "
     "delta_p_mean delta_p_rms tokens_scored windows bpw_quantized bpw_model weight_bytes kv_bytes_per_token "
     "seconds "
     "ppl_stderr_iid kl_stderr_iid ppl_low ppl_high ln_ppl_ratio_low ln_ppl_ratio_high kl_low kl_high "
     "top1_low top1_high status notes"},
    {"comparisons",
     "run position scheme than than_scheme metric difference stderr low high bootstrap_low bootstrap_high p "
     "p_holm windows verdict more_windows"},
    {"layer_errors",
     "run position layer site scope kind scheme rel_error rel_error_residual sqnr_db cosine max_abs_error "
     "amax kurtosis "
     "saturated nonfinite count row_error_p50 row_error_p90 rel_error_rest status"},
    {"layer_error_map",
     "run position scheme scope kind layer module row_error_p50 row_error_p90 rel_error rel_error_rest "
     "rel_error_residual sqnr_db cosine max_abs_error saturated nonfinite status"},
    {"outliers", "run layer site window token channel value median_abs ratio massive status"},
    {"site_statistics",
     "run layer site count nonfinite mean rms amax crest kurtosis rows massive_values massive_rows windows "
     "massive_windows status"},
    {"outlier_shares",
     "run position scheme layer site error2 rel_error massive_values massive_rows first_tokens rest_error2 "
     "rest_rel_error rest_massive_values rest_massive_rows nonfinite status"},
    {"task_scores",
     "run position scheme task items acc acc_stderr acc_norm acc_norm_stderr acc_bytes acc_tokens ppl flips "
     "status"},
    {"task_items", "run scheme task item choice loglikelihood gold greedy"},
    {"segment_scores",
     "run position scheme segment tokens windows nll nll_stderr ppl ln_ppl_ratio ln_ppl_ratio_stderr "
     "ln_ppl_ratio_low ln_ppl_ratio_high kl_mean kl_stderr kl_low kl_high kl_max top1_agreement top1_stderr "
     "margin_flips status ordinal"},
    {"schemes", "run position scheme spec weights activations kv"},
    {"sizes",
     "run position scheme parameters weight_bytes embedding_bytes lm_head_bytes bpw_quantized bpw_model "
     "kv_bytes_per_token kv_bytes cached_tokens decode_tokens_per_s prefill_seconds status"},
};

TEST(Schema, ViewsHaveExactlyThePromisedColumns) {
  const auto file = fresh_dir("store_views") / "r.db";
  Database::open(file);
  for (const auto& [view, promised] : kViews)
    EXPECT_THAT(columns(file, view), ElementsAreArray(words(promised))) << view;
}

// Every field of a record is in its view, in the order of its list.
template <class Record>
Names in_view(const Names& view) {
  Names fields;
  store::for_each_field<Record>([&](const auto& field, int) { fields.emplace_back(field.name); });
  Names found;
  for (const std::string& name : view)
    if (std::find(fields.begin(), fields.end(), name) != fields.end()) found.push_back(name);
  EXPECT_THAT(found, ElementsAreArray(fields));
  return found;
}

TEST(Schema, FieldListsAndViewsAgree) {
  const auto file = fresh_dir("store_fields") / "r.db";
  Database::open(file);
  EXPECT_EQ(in_view<RunRecord>(columns(file, "runs")).size() + 1, columns(file, "runs").size());  // run
  EXPECT_EQ(in_view<EvaluationRecord>(columns(file, "evaluations")).size() + 2,
            columns(file, "evaluations").size());  // run, notes
  EXPECT_EQ(in_view<LayerErrorRecord>(columns(file, "layer_errors")).size() + 2,
            columns(file, "layer_errors").size());  // run, scheme
  EXPECT_EQ(in_view<ComparisonRecord>(columns(file, "comparisons")).size() + 1,
            columns(file, "comparisons").size());  // run
  EXPECT_EQ(in_view<OutlierRecord>(columns(file, "outliers")).size() + 1,
            columns(file, "outliers").size());  // run
}

TEST(Schema, RefusesRowsThatBelongToNoRun) {
  const auto file = fresh_dir("store_orphans") / "r.db";
  Database::open(file);
  SQLite::Database db = store::open_for_writing(file, store::current_schema());
  for (const char* row : {"INSERT INTO scheme VALUES (9, 0, '', '', '', '', '')",
                          "INSERT INTO task_score VALUES (9, 0, 1, 1, NULL, NULL, NULL, NULL, NULL, 0, '')",
                          "INSERT INTO outlier VALUES (9, 1, 0, 0, 0, 1, 1, 1, 0, 'ok')",
                          "INSERT INTO size VALUES (9, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 'ok')"})
    EXPECT_THROW(db.exec(row), SQLite::Exception) << row;
}

TEST(Schema, UniqueKeysHoldNoNull) {
  const auto file = fresh_dir("store_keys") / "r.db";
  Database::open(file);
  const Table nullable =
      query_database(file,
                     "SELECT m.name, c.name FROM sqlite_schema m, pragma_index_list(m.name) i, "
                     "pragma_index_info(i.name) k, pragma_table_info(m.name) c "
                     "WHERE m.type = 'table' AND i.\"unique\" AND c.cid = k.cid AND NOT c.\"notnull\"");
  EXPECT_TRUE(nullable.rows.empty());
  const Table keys = query_database(file,
                                    "SELECT m.name FROM sqlite_schema m, pragma_index_list(m.name) i WHERE "
                                    "m.type = 'table' AND i.\"unique\"");
  EXPECT_GE(keys.rows.size(), 10u);  // the query above looked at something
}

TEST(Schema, OpensInSqlite3) {
  if (run({"sqlite3", "--version"}).status != 0) GTEST_SKIP() << "needs sqlite3";
  const auto file = fresh_dir("store_cli") / "r.db";
  Database::open(file);
  const RunResult result =
      run({"sqlite3", file.string(), "PRAGMA integrity_check", "SELECT version FROM schema_version",
           "PRAGMA user_version", "PRAGMA application_id", "PRAGMA journal_mode",
           "SELECT count(*) FROM evaluations"});
  EXPECT_EQ(result.out, "ok\n4\n4\n1364017488\nwal\n0\n") << result.err;
}

TEST(Schema, OpensInPython) {
  if (run({"python3", "-c", "import sqlite3; assert sqlite3.sqlite_version_info >= (3, 37)"}).status != 0)
    GTEST_SKIP() << "needs python3 with sqlite3 3.37 (STRICT tables)";
  const auto file = fresh_dir("store_python") / "r.db";
  Database db = Database::open(file);
  db.start_run(filled<RunRecord>(1), sample_schemes(2));
  const RunResult result =
      run({"python3", "-c",
           "import sqlite3, sys\n"
           "db = sqlite3.connect(sys.argv[1])\n"
           "for v in 'runs evaluations layer_errors task_scores task_items outliers sizes'.split():\n"
           "  print(v, len(db.execute('SELECT * FROM ' + v).fetchall()))",
           file.string()});
  EXPECT_EQ(result.out,
            "runs 1\nevaluations 0\nlayer_errors 0\ntask_scores 0\ntask_items 0\noutliers 0\nsizes 0\n")
      << result.err;
}

TEST(Schema, TheFileOfTheSchemaIsPlainSql) {
  if (run({"sqlite3", "--version"}).status != 0) GTEST_SKIP() << "needs sqlite3";
  const auto file = fresh_dir("store_plain") / "r.db";
  const RunResult made =
      run({"sqlite3", file.string(), ".read " + (source_dir() / "src/store/schema.sql").string()});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(Database::open(file).stored_windows(1), 0);  // and quantmap takes it for its own
}

TEST(Schema, ConstantsOfTheFileAndOfTheProgramAgree) {
  const auto file = fresh_dir("store_constants") / "r.db";
  const store::Schema schema = store::current_schema();
  execute(file, std::string(schema.sql));
  const Table table =
      query_database(file,
                     "SELECT a.application_id, u.user_version, v.version FROM pragma_application_id a, "
                     "pragma_user_version u, schema_version v");
  EXPECT_EQ(std::get<std::int64_t>(table.rows[0][0]), store::kApplicationId);
  EXPECT_EQ(std::get<std::int64_t>(table.rows[0][1]), schema.version());
  EXPECT_EQ(std::get<std::int64_t>(table.rows[0][2]), schema.version());
}

// A future of the schema: two versions on. What led to today's version is never run here.
constexpr std::array<std::string_view, 5> kMigrations = {
    "SELECT no_such_function()", "SELECT no_such_function()", "SELECT no_such_function()",
    "ALTER TABLE run ADD COLUMN host TEXT NOT NULL DEFAULT 'here'; DROP VIEW sizes",
    "UPDATE run SET host = host || ' and now'"};

TEST(Migration, BringsAnOlderDatabaseForwardAndKeepsItsRows) {
  const auto file = fresh_dir("store_migrate") / "r.db";
  Database::open(file).start_run(filled<RunRecord>(4), sample_schemes(2));
  const store::Schema future{"not used: the database exists", kMigrations};
  {
    SQLite::Database db = store::open_for_writing(file, future);
    EXPECT_EQ(db.execAndGet("SELECT host FROM run").getString(), "here and now");
    EXPECT_EQ(db.execAndGet("SELECT version FROM schema_version").getInt(), 6);
    EXPECT_EQ(db.execAndGet("PRAGMA user_version").getInt(), 6);
    EXPECT_EQ(db.execAndGet("SELECT count(*) FROM scheme").getInt(), 2);
  }
  store::open_for_writing(file, future);  // and once only
  EXPECT_EQ(store::open_for_reading(file, future).execAndGet("SELECT host FROM run").getString(),
            "here and now");

  // The program of today now meets a database of tomorrow.
  for (const auto& open : std::vector<std::function<void()>>{[&] { Database::open(file); },
                                                             [&] { query_database(file, "SELECT 1"); }}) {
    const Error error = error_of(open);
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(file.string()), HasSubstr("expected"), HasSubstr("found 6")));
  }
}

TEST(Migration, StartsAtTheVersionThatIsThere) {
  const auto file = fresh_dir("store_migrate_late") / "r.db";
  Database::open(file).start_run(filled<RunRecord>(4), sample_schemes(2));
  store::open_for_writing(file, {"", std::span(kMigrations).first(4)});
  SQLite::Database db = store::open_for_writing(file, {"", kMigrations});
  EXPECT_EQ(db.execAndGet("SELECT host FROM run").getString(), "here and now");
}

// A file that version 1 of the program wrote (tests/golden/store/schema_v1.sql is its schema, unchanged).
TEST(Migration, OfAVersion1FileGivesTodaysSchemaAndKeepsItsRows) {
  const auto dir = fresh_dir("store_v1");
  const auto old = dir / "old.db", fresh = dir / "fresh.db";
  execute(old, contents(source_dir() / "tests/golden/store/schema_v1.sql"));
  execute(
      old,
      "INSERT INTO run VALUES (1,'k','eval','complete','','','','','',1,0,'','','m','','','','','','t','',"
      "512,0,1,'all','auto','bf16','[]',1,0,1,'[]');"
      "INSERT INTO scheme VALUES (1,0,'BF16','','','',''), (1,1,'W4A16','','','','');"
      "INSERT INTO site VALUES (1,3,'model.layers.3 output'), (2,3,'model.layers.3.mlp.down_proj output'),"
      " (3,3,'model.layers.3.self_attn key'), (4,-1,'all'), (5,12,'model.layers.12.self_attn.q_proj weight');"
      "INSERT INTO layer_error SELECT 1,1,id,'total','output',0.5,NULL,NULL,NULL,NULL,NULL,NULL,0,0,9,0.25,"
      "NULL,NULL,'ok' FROM site");
  Database::open(old);
  Database::open(fresh);
  const char* schema =
      "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name";
  EXPECT_EQ(query_database(old, schema).rows, query_database(fresh, schema).rows);
  const Table map = query_database(
      old, "SELECT layer, module, row_error_p50, rel_error FROM layer_error_map ORDER BY layer, module");
  const std::vector<std::pair<std::int64_t, std::string>> places = {
      {3, "down_proj"}, {3, "layer"}, {3, "self_attn"}, {12, "q_proj"}};
  ASSERT_EQ(map.rows.size(), places.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    EXPECT_EQ(map.rows[i], (std::vector<Value>{places[i].first, places[i].second, 0.25, 0.5}));
}

TEST(Migration, ThatFailsLeavesTheDatabaseAsItWas) {
  const std::vector<std::pair<std::string_view, const char*>> cases = {
      {"CREATE TABLE extra (x); SELECT no_such_function()", "no such function"},
      {"CREATE TABLE extra (x); DELETE FROM run", "rows that do not"},  // orphans every scheme
  };
  for (const auto& [migration, reason] : cases) {
    const auto file = fresh_dir("store_migrate_bad") / "r.db";
    Database::open(file).start_run(filled<RunRecord>(4), sample_schemes(2));
    const std::array<std::string_view, 4> bad = {kMigrations[0], kMigrations[1], kMigrations[2], migration};
    EXPECT_THAT(error_of([&] { store::open_for_writing(file, {"", bad}); }).what(), HasSubstr(reason));
    Database db = Database::open(file);  // still of today
    EXPECT_TRUE(db.run(1));
    EXPECT_EQ(query_database(file, "SELECT * FROM sqlite_schema WHERE name = 'extra'").rows.size(), 0u);
  }
}

struct BadFile {
  const char* name;
  std::function<void(const std::filesystem::path&)> make;
  const char* found;
};

TEST(BadDatabase, IsOneLineNamingFileExpectedAndFoundAndStaysAsItWas) {
  const auto whole = fresh_dir("store_whole") / "r.db";
  {
    Database db = Database::open(whole);
    const auto run = db.start_run(filled<RunRecord>(1), sample_schemes(3));
    db.store_pass(run, sample_windows(3, 0, 100), {}, {});
  }
  const std::string bytes = contents(whole);
  const std::vector<BadFile> cases = {
      {"text", [](const auto& f) { write(f, "model,ppl\nthis is no database at all\n"); },
       R"(found a file that begins with "model,ppl\x0Athis i")"},
      {"another application",
       [](const auto& f) { execute(f, "PRAGMA application_id = 252006673; CREATE TABLE t (x)"); },
       "(expected application id 0x514d4150, found 0xf055111)"},
      {"no application id", [](const auto& f) { execute(f, "CREATE TABLE evaluations (x)"); },
       "(expected application id 0x514d4150, found 0x0)"},
      {"newer schema",
       [&](const auto& f) {
         write(f, bytes);
         execute(f, "PRAGMA user_version = 99");
       },
       "found 99)"},
      {"version 0",
       [&](const auto& f) {
         write(f, bytes);
         execute(f, "PRAGMA user_version = 0");
       },
       "found 0)"},
      {"cut in the middle", [&](const auto& f) { write(f, bytes.substr(0, bytes.size() / 2)); },
       "found database disk image is malformed)"},
      {"cut in its first page", [&](const auto& f) { write(f, bytes.substr(0, 1000)); },
       "found database disk image is malformed)"},
      {"cut in its header", [&](const auto& f) { write(f, bytes.substr(0, 50)); },
       "found database disk image is malformed)"},
      {"first page overwritten",
       [&](const auto& f) { write(f, bytes.substr(0, 100) + std::string(3996, 'x') + bytes.substr(4096)); },
       "found "},
      {"a folder", [](const auto& f) { std::filesystem::create_directory(f); },
       "(expected a file, found a folder)"},
  };
  for (const BadFile& bad : cases) {
    const auto file = fresh_dir("store_bad") / "bad.db";
    bad.make(file);
    const std::string before = std::filesystem::is_directory(file) ? "" : contents(file);
    for (const auto& open : std::vector<std::function<void()>>{
             [&] { Database::open(file); }, [&] { query_database(file, "SELECT * FROM runs"); }}) {
      const Error error = error_of(open);
      EXPECT_EQ(error.kind(), ErrorKind::input) << bad.name << ": " << error.what();
      EXPECT_THAT(error.what(), AllOf(HasSubstr("results database: " + file.string() + ": "),
                                      HasSubstr("(expected "), HasSubstr(bad.found)))
          << bad.name;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << bad.name;
    }
    EXPECT_EQ(std::filesystem::is_directory(file) ? "" : contents(file), before) << bad.name;
  }
}

TEST(BadDatabase, AnEmptyFileIsANewDatabaseButHoldsNoResults) {
  const auto file = fresh_dir("store_empty") / "r.db";
  write(file, "");
  EXPECT_THAT(error_of([&] { query_database(file, "SELECT 1"); }).what(),
              HasSubstr("found an empty database"));
  EXPECT_EQ(Database::open(file).stored_windows(1), 0);
  EXPECT_THAT(error_of([&] { query_database(file.parent_path() / "no.db", "SELECT 1"); }).what(),
              HasSubstr("no.db: does not exist"));
  EXPECT_FALSE(std::filesystem::exists(file.parent_path() / "no.db"));
}

TEST(BadDatabase, AFolderThatIsNotThereIsNamed) {
  const auto file = fresh_dir("store_nowhere") / "no such folder" / "r.db";
  const Error error = error_of([&] { Database::open(file); });
  EXPECT_EQ(error.kind(), ErrorKind::failed);
  EXPECT_THAT(error.what(), HasSubstr("no folder"));
}

TEST(Database, NamesAreFilesAndNothingElse) {
  // SQLite gives these a meaning of their own: a database in memory, a URI, an option.
  const auto folder = fresh_dir("store_names");
  const auto back = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  for (const char* name : {":memory:", "file:r.db?mode=memory", "100%41.db", "r?x#y.db"}) {
    Database::open(name);
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
    EXPECT_EQ(query_database(name, "SELECT count(*) FROM runs").rows.size(), 1u) << name;
  }
  std::filesystem::current_path(back);
}

}  // namespace
}  // namespace quantmap
