-- The results database of quantmap, version 4. The views at the end are the interface: their columns are stable, and
-- the tables behind them may change by migrations (schema.cpp). Every row of every view leads to its run.
--
-- A run owns schemes (position 0 is the reference); (run, position) names one everywhere. Keys hold no NULL: UNIQUE
-- would let two such rows through. A REAL that may be NULL is a number that is undefined or not finite, and the
-- `status` of its row says which and why. The constants below are also in schema.cpp; a test compares them.
PRAGMA application_id = 1364017488;  -- 'QMAP'
PRAGMA user_version = 4;

CREATE TABLE schema_version (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL
) STRICT;
INSERT INTO schema_version VALUES (1, 4);

-- One invocation. The same key measured twice is two runs, so key is not unique; AUTOINCREMENT: a number printed
-- once never means another run later.
CREATE TABLE run (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL,
  command TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('running', 'complete')),
  command_line TEXT NOT NULL,
  version TEXT NOT NULL,
  git_revision TEXT NOT NULL,
  machine TEXT NOT NULL,
  device TEXT NOT NULL,
  threads INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  started_at TEXT NOT NULL,
  finished_at TEXT NOT NULL,
  model TEXT NOT NULL,
  model_type TEXT NOT NULL,
  model_sha256 TEXT NOT NULL,
  tokenizer_sha256 TEXT NOT NULL,
  text_sha256 TEXT NOT NULL,
  token_ids_sha256 TEXT NOT NULL,
  text TEXT NOT NULL,
  protocol TEXT NOT NULL,
  ctx INTEGER NOT NULL,
  stride INTEGER NOT NULL,
  windows INTEGER NOT NULL,
  score TEXT NOT NULL,
  bos TEXT NOT NULL,
  compute TEXT NOT NULL,
  first_ids TEXT NOT NULL,
  text_tokens INTEGER NOT NULL,
  dropped_tokens INTEGER NOT NULL,
  plan_windows INTEGER NOT NULL,
  notes TEXT NOT NULL
) STRICT;
CREATE INDEX run_by_key ON run (key);

CREATE TABLE scheme (
  run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  position INTEGER NOT NULL CHECK (position >= 0),
  scheme TEXT NOT NULL,
  spec TEXT NOT NULL,
  weights TEXT NOT NULL,
  activations TEXT NOT NULL,
  kv TEXT NOT NULL,
  PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

-- What one scheme measured in one window: packed vectors, kept for paired comparisons.
CREATE TABLE window (
  run INTEGER NOT NULL,
  position INTEGER NOT NULL,
  window INTEGER NOT NULL CHECK (window >= 0),
  tokens BLOB NOT NULL,
  sums BLOB NOT NULL,
  UNIQUE (run, position, window),
  FOREIGN KEY (run, position) REFERENCES scheme ON DELETE CASCADE
) STRICT;

-- Accumulators of an unfinished run after its last stored pass.
CREATE TABLE state (
  run INTEGER NOT NULL,
  position INTEGER NOT NULL,
  state BLOB NOT NULL,
  UNIQUE (run, position),
  FOREIGN KEY (run, position) REFERENCES scheme ON DELETE CASCADE
) STRICT;

-- _low, _high: 95 % intervals by Student's t over windows (evals/student_t.hpp).
CREATE TABLE evaluation (
  run INTEGER NOT NULL,
  position INTEGER NOT NULL,
  ppl REAL,
  ppl_stderr REAL,
  nll REAL,
  nll_stderr REAL,
  ln_ppl_ratio REAL,
  ln_ppl_ratio_stderr REAL,
  kl_mean REAL,
  kl_stderr REAL,
  kl_p50 REAL,
  kl_p90 REAL,
  kl_p99 REAL,
  kl_p999 REAL,
  kl_max REAL,
  kl_infinite INTEGER NOT NULL,
  tv_mean REAL,
  top1_agreement REAL,
  top1_stderr REAL,
  margin_flips INTEGER NOT NULL,
  delta_p_mean REAL,
  delta_p_rms REAL,
  tokens_scored INTEGER NOT NULL,
  windows INTEGER NOT NULL,
  bpw_quantized REAL,
  bpw_model REAL,
  weight_bytes REAL,
  kv_bytes_per_token REAL,
  seconds REAL,
  ppl_stderr_iid REAL,
  kl_stderr_iid REAL,
  status TEXT NOT NULL, ppl_low REAL, ppl_high REAL, ln_ppl_ratio_low REAL, ln_ppl_ratio_high REAL, kl_low REAL, kl_high REAL, top1_low REAL, top1_high REAL,
  PRIMARY KEY (run, position),
  FOREIGN KEY (run, position) REFERENCES scheme ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE evaluation_note (
  run INTEGER NOT NULL,
  position INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  note TEXT NOT NULL,
  PRIMARY KEY (run, position, ordinal),
  FOREIGN KEY (run, position) REFERENCES evaluation ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

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

-- A place in a model, such as (3, 'model.layers.3 output'); layer -1: not inside a layer.
CREATE TABLE site (
  id INTEGER PRIMARY KEY,
  layer INTEGER NOT NULL,
  site TEXT NOT NULL,
  UNIQUE (layer, site)
) STRICT;

CREATE TABLE layer_error (
  run INTEGER NOT NULL,
  position INTEGER NOT NULL,
  site_id INTEGER NOT NULL REFERENCES site,
  scope TEXT NOT NULL,
  kind TEXT NOT NULL,
  rel_error REAL,
  rel_error_residual REAL,
  sqnr_db REAL,
  cosine REAL,
  max_abs_error REAL,
  amax REAL,
  kurtosis REAL,
  saturated INTEGER NOT NULL,
  nonfinite INTEGER NOT NULL,
  count INTEGER NOT NULL,
  row_error_p50 REAL,
  row_error_p90 REAL,
  rel_error_rest REAL,
  status TEXT NOT NULL,
  UNIQUE (run, position, site_id, scope, kind),
  FOREIGN KEY (run, position) REFERENCES scheme ON DELETE CASCADE
) STRICT;

CREATE TABLE outlier (
  run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  site_id INTEGER NOT NULL REFERENCES site,
  window INTEGER NOT NULL,
  token INTEGER NOT NULL,
  channel INTEGER NOT NULL,
  value REAL,
  median_abs REAL,
  ratio REAL,
  massive INTEGER NOT NULL CHECK (massive IN (0, 1)),
  status TEXT NOT NULL,
  UNIQUE (run, site_id, window, token, channel)
) STRICT;

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

CREATE TABLE task (
  id INTEGER PRIMARY KEY,
  task TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE task_score (
  run INTEGER NOT NULL,
  position INTEGER NOT NULL,
  task_id INTEGER NOT NULL REFERENCES task,
  items INTEGER NOT NULL,
  acc REAL,
  acc_stderr REAL,
  acc_norm REAL,
  acc_bytes REAL,
  acc_tokens REAL,
  flips INTEGER NOT NULL,
  status TEXT NOT NULL, acc_norm_stderr REAL, ppl REAL,
  PRIMARY KEY (run, position, task_id),
  FOREIGN KEY (run, position) REFERENCES scheme ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- One choice of one item; gold: 1 for the right one.
CREATE TABLE task_item (
  run INTEGER NOT NULL,
  position INTEGER NOT NULL,
  task_id INTEGER NOT NULL REFERENCES task,
  item INTEGER NOT NULL,
  choice INTEGER NOT NULL,
  loglikelihood REAL,
  gold INTEGER NOT NULL CHECK (gold IN (0, 1)), greedy INTEGER NOT NULL DEFAULT 0 CHECK (greedy IN (0, 1)),
  PRIMARY KEY (run, position, task_id, item, choice),
  FOREIGN KEY (run, position) REFERENCES scheme ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- A memory map from the config alone; estimates are NULL where no GPU was given.
CREATE TABLE size (
  run INTEGER NOT NULL,
  position INTEGER NOT NULL,
  parameters INTEGER NOT NULL,
  weight_bytes REAL,
  embedding_bytes REAL,
  lm_head_bytes REAL,
  bpw_quantized REAL,
  bpw_model REAL,
  kv_bytes_per_token REAL,
  kv_bytes REAL,
  cached_tokens REAL,
  decode_tokens_per_s REAL,
  prefill_seconds REAL,
  status TEXT NOT NULL,
  PRIMARY KEY (run, position),
  FOREIGN KEY (run, position) REFERENCES scheme ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE VIEW runs AS
SELECT id AS run, key, command, status, command_line, version, git_revision, machine, device, threads, seed, started_at,
  finished_at, model, model_type, model_sha256, tokenizer_sha256, text_sha256, token_ids_sha256, text, protocol, ctx,
  stride, windows, score, bos, compute, first_ids, text_tokens, dropped_tokens, plan_windows, notes
FROM run;

-- notes: a JSON array of strings.
CREATE VIEW evaluations AS
SELECT e.run, e.position, s.scheme, s.spec, s.weights, s.activations, s.kv, ppl, ppl_stderr, nll, nll_stderr,
  ln_ppl_ratio, ln_ppl_ratio_stderr, kl_mean, kl_stderr, kl_p50, kl_p90, kl_p99, kl_p999, kl_max, kl_infinite, tv_mean,
  top1_agreement, top1_stderr, margin_flips, delta_p_mean, delta_p_rms, tokens_scored, windows, bpw_quantized,
  bpw_model, weight_bytes, kv_bytes_per_token, seconds, ppl_stderr_iid, kl_stderr_iid, ppl_low, ppl_high, ln_ppl_ratio_low,
  ln_ppl_ratio_high, kl_low, kl_high, top1_low, top1_high, status,
  (SELECT json_group_array(note) FROM (SELECT n.note FROM evaluation_note n
    WHERE n.run = e.run AND n.position = e.position ORDER BY n.ordinal)) AS notes
FROM evaluation e JOIN scheme s ON s.run = e.run AND s.position = e.position;

CREATE VIEW comparisons AS
SELECT c.run, c.position, s.scheme, c.than, t.scheme AS than_scheme, metric, difference, stderr, low, high, bootstrap_low,
  bootstrap_high, p, p_holm, windows, verdict, more_windows
FROM comparison c JOIN scheme s ON s.run = c.run AND s.position = c.position
  JOIN scheme t ON t.run = c.run AND t.position = c.than;

CREATE VIEW layer_errors AS
SELECT l.run, l.position, p.layer, p.site, l.scope, l.kind, s.scheme, rel_error, rel_error_residual, sqnr_db, cosine,
  max_abs_error, amax, kurtosis, saturated, nonfinite, count, row_error_p50, row_error_p90, rel_error_rest, status
FROM layer_error l JOIN scheme s ON s.run = l.run AND s.position = l.position JOIN site p ON p.id = l.site_id;

-- Ready for a heat map: layers down, modules across, one map a scheme, scope and kind. module: `down_proj`, `self_attn`,
-- `layer` for the residual stream after it. Sums of many places (layer -1) are not in it.
CREATE VIEW layer_error_map AS
SELECT run, position, scheme, scope, kind, layer,
  CASE site WHEN prefix || ' output' THEN 'layer' ELSE
    replace(replace(substr(site, length(prefix) + 2, instr(site, ' ') - length(prefix) - 2), 'self_attn.', ''), 'mlp.', '')
  END AS module,
  row_error_p50, row_error_p90, rel_error, rel_error_rest, rel_error_residual, sqnr_db, cosine, max_abs_error, saturated,
  nonfinite, status
FROM (SELECT *, 'model.layers.' || layer AS prefix FROM layer_errors WHERE layer >= 0);

CREATE VIEW outliers AS
SELECT o.run, p.layer, p.site, o.window, o.token, o.channel, o.value, o.median_abs, o.ratio, o.massive, o.status
FROM outlier o JOIN site p ON p.id = o.site_id;

CREATE VIEW site_statistics AS
SELECT t.run, p.layer, p.site, count, nonfinite, mean, rms, amax, crest, kurtosis, rows, massive_values, massive_rows,
  windows, massive_windows, status
FROM site_statistic t JOIN site p ON p.id = t.site_id;

CREATE VIEW outlier_shares AS
SELECT o.run, o.position, s.scheme, p.layer, p.site, error2, rel_error, massive_values, massive_rows, first_tokens,
  rest_error2, rest_rel_error, rest_massive_values, rest_massive_rows, nonfinite, status
FROM outlier_share o JOIN scheme s ON s.run = o.run AND s.position = o.position JOIN site p ON p.id = o.site_id;

CREATE VIEW task_scores AS
SELECT k.run, k.position, s.scheme, t.task, items, acc, acc_stderr, acc_norm, acc_norm_stderr, acc_bytes, acc_tokens, ppl,
  flips, status
FROM task_score k JOIN scheme s ON s.run = k.run AND s.position = k.position JOIN task t ON t.id = k.task_id;

CREATE VIEW task_items AS
SELECT i.run, s.scheme, t.task, i.item, i.choice, i.loglikelihood, i.gold, i.greedy
FROM task_item i JOIN scheme s ON s.run = i.run AND s.position = i.position JOIN task t ON t.id = i.task_id;

CREATE VIEW sizes AS
SELECT z.run, z.position, s.scheme, parameters, weight_bytes, embedding_bytes, lm_head_bytes, bpw_quantized, bpw_model,
  kv_bytes_per_token, kv_bytes, cached_tokens, decode_tokens_per_s, prefill_seconds, status
FROM size z JOIN scheme s ON s.run = z.run AND s.position = z.position;

-- Of every run, also those that measured layer errors alone.
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
