-- Do the schemes that KL ranks worst also lose most on the tasks?
-- :run integer: a run other than the latest with tasks
-- rho: Spearman's rank correlation of KL with what a task loses, over the schemes, ties at their mean rank; 1: KL tells the
-- order. rho_low and rho_high: 95 %, Fisher's z with the variance of Bonett and Wright (2000), from 4 schemes on.
WITH
  scores AS (
    SELECT t.*, e.kl_mean, b.acc - t.acc AS acc_lost, b.acc_norm - t.acc_norm AS acc_norm_lost
    FROM task_scores t
    JOIN evaluations e ON e.run = t.run AND e.position = t.position
    LEFT JOIN task_scores b ON b.run = t.run AND b.task = t.task AND b.position = 0
    WHERE t.run = coalesce(:run, (SELECT max(run) FROM task_scores)) AND t.position > 0 AND e.kl_mean IS NOT NULL
  ),
  pairs AS (
    SELECT task, 'acc' AS lost, kl_mean AS x, acc_lost AS y FROM scores WHERE acc_lost IS NOT NULL
    UNION ALL SELECT task, 'acc_norm', kl_mean, acc_norm_lost FROM scores WHERE acc_norm_lost IS NOT NULL
    UNION ALL SELECT task, 'flips', kl_mean, flips FROM scores
  ),
  ranked AS (
    SELECT task, lost,
      rank() OVER (PARTITION BY task, lost ORDER BY x) + (count(*) OVER (PARTITION BY task, lost, x) - 1) / 2.0
        - (count(*) OVER (PARTITION BY task, lost) + 1) / 2.0 AS rx,
      rank() OVER (PARTITION BY task, lost ORDER BY y) + (count(*) OVER (PARTITION BY task, lost, y) - 1) / 2.0
        - (count(*) OVER (PARTITION BY task, lost) + 1) / 2.0 AS ry
    FROM pairs
  ),
  correlated AS (
    SELECT task, lost, count(*) AS schemes, sum(rx * ry) / nullif(sqrt(sum(rx * rx) * sum(ry * ry)), 0) AS rho
    FROM ranked GROUP BY task, lost
  ),
  intervals AS (
    SELECT *, CASE WHEN schemes > 3 AND abs(rho) < 1 THEN 1.96 * sqrt((1 + rho * rho / 2) / (schemes - 3)) END AS half
    FROM correlated
  )
SELECT task, lost, schemes, rho, tanh(atanh(rho) - half) AS rho_low, tanh(atanh(rho) + half) AS rho_high,
  CASE WHEN rho IS NULL THEN 'undefined: all ranks are equal' ELSE 'ok' END AS status
FROM intervals
ORDER BY task, lost;
