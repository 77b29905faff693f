-- What does each scheme cost on each task, beside its KL?
-- :run integer: a run other than the latest with tasks
-- :task text: one task
-- change: against the reference of the same run. flips: items whose answer the scheme changes.
WITH scores AS (
  SELECT * FROM task_scores
  WHERE run = coalesce(:run, (SELECT max(run) FROM task_scores)) AND (:task IS NULL OR task = :task)
)
SELECT t.task, t.scheme, e.kl_mean, e.kl_stderr, t.items, t.acc, t.acc_stderr, t.acc - b.acc AS acc_change, t.acc_norm,
  t.acc_norm - b.acc_norm AS acc_norm_change, t.flips, t.flips * 1.0 / nullif(t.items, 0) AS flip_share, t.status
FROM scores t
LEFT JOIN scores b ON b.task = t.task AND b.position = 0
LEFT JOIN evaluations e ON e.run = t.run AND e.position = t.position
ORDER BY t.task, e.kl_mean IS NULL, e.kl_mean, t.position;
