#include "store/schema.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <array>

#include "core/error.hpp"
#include "embedded/schema.hpp"
#include "store/sqlite_error.hpp"

namespace quantmap::store {
namespace {

namespace fs = std::filesystem;

struct Found {
  int application_id = 0;
  int version = 0;
  int objects = 0;  // tables, views, indexes
  bool empty() const { return application_id == 0 && objects == 0; }
};

Found look(SQLite::Database& db) {
  return {db.execAndGet("PRAGMA application_id").getInt(), db.execAndGet("PRAGMA user_version").getInt(),
          db.execAndGet("SELECT count(*) FROM sqlite_schema").getInt()};
}

void require_ours(const Found& found, const std::string& file) {
  if (found.empty()) fail_input(kResults, file, "no results", "a database of quantmap", "an empty database");
  if (found.application_id != kApplicationId)
    fail_input(kResults, file, "the database of another application",
               fmt::format("application id {:#x}", kApplicationId),
               fmt::format("{:#x}", static_cast<unsigned>(found.application_id)));
}

void migrate(SQLite::Database& db, const std::string& file, const Schema& schema, int version) {
  for (; version < schema.version(); ++version)
    db.exec(std::string(schema.migrations[static_cast<std::size_t>(version) - 1]));
  if (SQLite::Statement(db, "PRAGMA foreign_key_check").executeStep())
    fail_input(kResults, file, "cannot be migrated", "rows that all lead to their run", "rows that do not");
  db.exec(fmt::format("PRAGMA user_version = {0}; UPDATE schema_version SET version = {0}", version));
}

// As SQLite must see it: no name is taken for a URI or for `:memory:`.
std::string sqlite_name(const fs::path& path) { return fs::absolute(path).lexically_normal().string(); }

// A copy of the database as it is now. The caller holds the write lock, so nothing changes meanwhile.
fs::path keep_copy(const fs::path& path, int version) {
  const std::string first = fmt::format("{}.v{}", path.string(), version);
  std::string name = first;
  for (int n = 2; fs::exists(name); ++n) name = fmt::format("{}.{}", first, n);
  try {
    SQLite::Database reader(sqlite_name(path), SQLite::OPEN_READONLY, kBusyTimeoutMs);
    SQLite::Statement copy(reader, "VACUUM INTO ?");
    copy.bind(1, sqlite_name(name));
    copy.exec();
  } catch (const SQLite::Exception& error) {
    std::error_code ignored;
    fs::remove(name, ignored);
    fail(kResults, path.string(),
         fmt::format("not migrated: the old file cannot be kept as {}: {}", quoted(name),
                     one_line(error.what())));
  }
  return name;
}

void migrate_keeping_a_copy(SQLite::Database& db, const fs::path& path, const Schema& schema, int version,
                            fs::path* kept) {
  if (version < 1)
    fail_input(kResults, path.string(), "schema version", "1 or more", std::to_string(version));
  const fs::path copy = keep_copy(path, version);
  try {
    migrate(db, path.string(), schema, version);
  } catch (...) {  // the database stays as it was: a copy would only be in the way
    std::error_code ignored;
    fs::remove(copy, ignored);
    throw;
  }
  if (kept) *kept = copy;
}

void bring_up_to_date(SQLite::Database& db, const fs::path& path, const Schema& schema, fs::path* kept) {
  const std::string file = path.string();
  Found found = look(db);
  if (!found.empty()) {
    require_ours(found, file);
    if (found.version > schema.version())
      fail_input(kResults, file, "written by a newer quantmap",
                 fmt::format("schema version {}", schema.version()), std::to_string(found.version));
    if (found.version == schema.version()) return;
  }
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
  found = look(db);  // another process may have been faster
  if (found.empty())
    db.exec(std::string(schema.sql));
  else if (found.version < schema.version())
    migrate_keeping_a_copy(db, path, schema, found.version, kept);
  transaction.commit();
}

std::string immutable_uri(const fs::path& path) {
  std::string uri = "file:";
  for (const char c : sqlite_name(path)) {
    if (c == '%' || c == '?' || c == '#')
      uri += fmt::format("%{:02X}", static_cast<unsigned>(c));
    else
      uri += c;
  }
  return uri + "?immutable=1";
}

void require_file(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    fail_input(kResults, path.string(), "not a file", "a file", "a folder");
}

SQLite::Database open_checked(const std::string& name, int flags, const std::string& file,
                              const Schema& schema) {
  SQLite::Database db(name, flags, kBusyTimeoutMs);
  const Found found = look(db);
  require_ours(found, file);
  if (found.version != schema.version())
    fail_input(kResults, file, "another schema version", std::to_string(schema.version()),
               std::to_string(found.version));
  return db;
}

// [i]: from version i + 1 to i + 2.
constexpr std::array<std::string_view, 3> kMigrations = {
    R"sql(-- Ready for a heat map: layers down, modules across, one map a scheme, scope and kind. module: `down_proj`, `self_attn`,
-- `layer` for the residual stream after it. Sums of many places (layer -1) are not in it.
CREATE VIEW layer_error_map AS
SELECT run, position, scheme, scope, kind, layer,
  CASE site WHEN prefix || ' output' THEN 'layer' ELSE
    replace(replace(substr(site, length(prefix) + 2, instr(site, ' ') - length(prefix) - 2), 'self_attn.', ''), 'mlp.', '')
  END AS module,
  row_error_p50, row_error_p90, rel_error, rel_error_rest, rel_error_residual, sqnr_db, cosine, max_abs_error, saturated,
  nonfinite, status
FROM (SELECT *, 'model.layers.' || layer AS prefix FROM layer_errors WHERE layer >= 0);

-- A site of the reference over all windows of a run of `outliers`.
CREATE TABLE site_statistic (
  run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  site_id INTEGER NOT NULL REFERENCES site,
  count INTEGER NOT NULL,
  nonfinite INTEGER NOT NULL,
  mean REAL,
  rms REAL,
  amax REAL,
  crest REAL,
  kurtosis REAL,
  rows INTEGER NOT NULL,
  massive_values INTEGER NOT NULL,
  massive_rows INTEGER NOT NULL,
  windows INTEGER NOT NULL,
  massive_windows INTEGER NOT NULL,
  status TEXT NOT NULL,
  UNIQUE (run, site_id)
) STRICT;

-- The squared local error of a scheme's format at a site; shares of it, and the same without first tokens (rest_…).
CREATE TABLE outlier_share (
  run INTEGER NOT NULL,
  position INTEGER NOT NULL,
  site_id INTEGER NOT NULL REFERENCES site,
  error2 REAL,
  rel_error REAL,
  massive_values REAL,
  massive_rows REAL,
  first_tokens REAL,
  rest_error2 REAL,
  rest_rel_error REAL,
  rest_massive_values REAL,
  rest_massive_rows REAL,
  nonfinite INTEGER NOT NULL,
  status TEXT NOT NULL,
  UNIQUE (run, position, site_id),
  FOREIGN KEY (run, position) REFERENCES scheme ON DELETE CASCADE
) STRICT;

CREATE VIEW site_statistics AS
SELECT t.run, p.layer, p.site, count, nonfinite, mean, rms, amax, crest, kurtosis, rows, massive_values, massive_rows,
  windows, massive_windows, status
FROM site_statistic t JOIN site p ON p.id = t.site_id;

CREATE VIEW outlier_shares AS
SELECT o.run, o.position, s.scheme, p.layer, p.site, error2, rel_error, massive_values, massive_rows, first_tokens,
  rest_error2, rest_rel_error, rest_massive_values, rest_massive_rows, nonfinite, status
FROM outlier_share o JOIN scheme s ON s.run = o.run AND s.position = o.position JOIN site p ON p.id = o.site_id;
)sql",
    R"sql(-- 95 % intervals by Student's t over windows.
ALTER TABLE evaluation ADD COLUMN ppl_low REAL;
ALTER TABLE evaluation ADD COLUMN ppl_high REAL;
ALTER TABLE evaluation ADD COLUMN ln_ppl_ratio_low REAL;
ALTER TABLE evaluation ADD COLUMN ln_ppl_ratio_high REAL;
ALTER TABLE evaluation ADD COLUMN kl_low REAL;
ALTER TABLE evaluation ADD COLUMN kl_high REAL;
ALTER TABLE evaluation ADD COLUMN top1_low REAL;
ALTER TABLE evaluation ADD COLUMN top1_high REAL;

DROP VIEW evaluations;
CREATE VIEW evaluations AS
SELECT e.run, e.position, s.scheme, s.spec, s.weights, s.activations, s.kv, ppl, ppl_stderr, nll, nll_stderr,
  ln_ppl_ratio, ln_ppl_ratio_stderr, kl_mean, kl_stderr, kl_p50, kl_p90, kl_p99, kl_p999, kl_max, kl_infinite, tv_mean,
  top1_agreement, top1_stderr, margin_flips, delta_p_mean, delta_p_rms, tokens_scored, windows, bpw_quantized,
  bpw_model, weight_bytes, kv_bytes_per_token, seconds, ppl_stderr_iid, kl_stderr_iid, ppl_low, ppl_high, ln_ppl_ratio_low,
  ln_ppl_ratio_high, kl_low, kl_high, top1_low, top1_high, status,
  (SELECT json_group_array(note) FROM (SELECT n.note FROM evaluation_note n
    WHERE n.run = e.run AND n.position = e.position ORDER BY n.ordinal)) AS notes
FROM evaluation e JOIN scheme s ON s.run = e.run AND s.position = e.position;

-- Two schemes of a run on the same windows (evals/comparison.hpp): `metric` of `position` less that of `than`.
CREATE TABLE comparison (
  run INTEGER NOT NULL,
  position INTEGER NOT NULL,
  than INTEGER NOT NULL,
  metric TEXT NOT NULL,
  difference REAL,
  stderr REAL,
  low REAL,
  high REAL,
  bootstrap_low REAL,
  bootstrap_high REAL,
  p REAL,
  p_holm REAL,
  windows INTEGER NOT NULL,
  verdict TEXT NOT NULL,
  more_windows REAL,
  PRIMARY KEY (run, position, than, metric),
  FOREIGN KEY (run, position) REFERENCES scheme ON DELETE CASCADE,
  FOREIGN KEY (run, than) REFERENCES scheme ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE VIEW comparisons AS
SELECT c.run, c.position, s.scheme, c.than, t.scheme AS than_scheme, metric, difference, stderr, low, high, bootstrap_low,
  bootstrap_high, p, p_holm, windows, verdict, more_windows
FROM comparison c JOIN scheme s ON s.run = c.run AND s.position = c.position
  JOIN scheme t ON t.run = c.run AND t.position = c.than;

ALTER TABLE task_score ADD COLUMN acc_norm_stderr REAL;
ALTER TABLE task_score ADD COLUMN ppl REAL;
ALTER TABLE task_item ADD COLUMN greedy INTEGER NOT NULL DEFAULT 0 CHECK (greedy IN (0, 1));

DROP VIEW task_scores;
CREATE VIEW task_scores AS
SELECT k.run, k.position, s.scheme, t.task, items, acc, acc_stderr, acc_norm, acc_norm_stderr, acc_bytes, acc_tokens, ppl,
  flips, status
FROM task_score k JOIN scheme s ON s.run = k.run AND s.position = k.position JOIN task t ON t.id = k.task_id;

DROP VIEW task_items;
CREATE VIEW task_items AS
SELECT i.run, s.scheme, t.task, i.item, i.choice, i.loglikelihood, i.gold, i.greedy
FROM task_item i JOIN scheme s ON s.run = i.run AND s.position = i.position JOIN task t ON t.id = i.task_id;
)sql",
    R"sql(-- Of every run, also those that measured layer errors alone.
CREATE VIEW schemes AS
SELECT run, position, scheme, spec, weights, activations, kv FROM scheme;

-- The tokens of one label in the windows' token ids, as `evaluation` has all of them; ordinal: in the order of the run.
CREATE TABLE segment_score (
  ordinal INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  position INTEGER NOT NULL,
  segment TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  windows INTEGER NOT NULL,
  nll REAL,
  nll_stderr REAL,
  ppl REAL,
  ln_ppl_ratio REAL,
  ln_ppl_ratio_stderr REAL,
  ln_ppl_ratio_low REAL,
  ln_ppl_ratio_high REAL,
  kl_mean REAL,
  kl_stderr REAL,
  kl_low REAL,
  kl_high REAL,
  kl_max REAL,
  top1_agreement REAL,
  top1_stderr REAL,
  margin_flips INTEGER NOT NULL,
  status TEXT NOT NULL,
  UNIQUE (run, position, segment),
  FOREIGN KEY (run, position) REFERENCES scheme ON DELETE CASCADE
) STRICT;

CREATE VIEW segment_scores AS
SELECT g.run, g.position, s.scheme, segment, tokens, windows, nll, nll_stderr, ppl, ln_ppl_ratio, ln_ppl_ratio_stderr,
  ln_ppl_ratio_low, ln_ppl_ratio_high, kl_mean, kl_stderr, kl_low, kl_high, kl_max, top1_agreement, top1_stderr,
  margin_flips, status, ordinal
FROM segment_score g JOIN scheme s ON s.run = g.run AND s.position = g.position;
)sql",
};

}  // namespace

Schema current_schema() { return {embedded::schema[0].second, kMigrations}; }

SQLite::Database open_for_writing(const fs::path& path, const Schema& schema, fs::path* kept) {
  const std::string file = path.string();
  require_file(path);
  const fs::path folder = fs::absolute(path).parent_path();
  if (!fs::is_directory(folder))
    fail(kResults, file, fmt::format("cannot be made: no folder {}", quoted(folder.string())));
  return guarded(file, [&] {
    SQLite::Database db(sqlite_name(path), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kBusyTimeoutMs);
    if (sqlite3_db_readonly(db.getHandle(), "main") == 1)
      fail(kResults, file, "not writable (expected permission to write, found a read-only file)");
    bring_up_to_date(db, path, schema, kept);
    // WAL: readers never wait for a pass. FULL: a pass is minutes of work and its commit one fsync, so it
    // survives a power cut as well as a killed process.
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
    return db;
  });
}

bool is_outdated(const fs::path& path, const Schema& schema) {
  if (!fs::is_regular_file(path)) return false;
  try {
    SQLite::Database db(sqlite_name(path), SQLite::OPEN_READONLY, kBusyTimeoutMs);
    const Found found = look(db);
    return found.application_id == kApplicationId && found.version < schema.version();
  } catch (const SQLite::Exception&) {
    return false;
  }
}

SQLite::Database open_for_reading(const fs::path& path, const Schema& schema) {
  const std::string file = path.string();
  require_file(path);
  if (!fs::exists(path)) fail_input(kResults, file, "does not exist");
  return guarded(file, [&] {
    try {
      return open_checked(sqlite_name(path), SQLite::OPEN_READONLY, file, schema);
    } catch (const SQLite::Exception& error) {
      // WAL needs files beside the database. Where they cannot be made, nobody can be writing either; without
      // a log of its own the database is whole as it lies.
      std::error_code ignored;
      const fs::path log = sqlite_name(path) + "-wal";
      const bool has_log = fs::exists(log, ignored) && fs::file_size(log, ignored) > 0;
      const int code = error.getErrorCode();
      if ((code != SQLITE_CANTOPEN && code != SQLITE_READONLY) || has_log) throw;
    }
    return open_checked(immutable_uri(path), SQLite::OPEN_READONLY | SQLite::OPEN_URI, file, schema);
  });
}

}  // namespace quantmap::store
