-- How fast does each scheme's error grow with depth, and at which layer does it jump?
-- :run integer: a run other than the latest with error tables
-- The residual stream after each layer, median row. growth: the factor from one layer to the next, of the straight line
-- through ln(error) by least squares; step: the largest factor between neighbours, at step_layer. No error, no logarithm.
WITH
  errors AS (
    SELECT position, scheme, layer, coalesce(row_error_p50, rel_error) AS error
    FROM layer_errors
    WHERE run = coalesce(
        :run, (SELECT max(run) FROM runs WHERE EXISTS (SELECT 1 FROM layer_errors e WHERE e.run = runs.run)))
      AND position > 0 AND scope = 'total' AND site = 'model.layers.' || layer || ' output'
  ),
  logs AS (
    SELECT *, ln(error) AS y, layer - avg(layer) OVER (PARTITION BY position) AS x,
      error / lag(error) OVER (PARTITION BY position ORDER BY layer) AS step
    FROM errors WHERE error > 0
  ),
  steps AS (SELECT position, layer, step, row_number() OVER (PARTITION BY position ORDER BY step DESC, layer) AS n FROM logs)
SELECT scheme, count(*) AS layers, min(l.layer) AS first_layer, max(l.layer) AS last_layer,
  max(error) FILTER (WHERE first) AS first_error, max(error) FILTER (WHERE last) AS last_error,
  max(error) FILTER (WHERE last) / max(error) FILTER (WHERE first) AS ratio,
  exp(sum(x * y) / nullif(sum(x * x), 0)) AS growth, max(s.step) AS step,
  max(s.layer) FILTER (WHERE s.step IS NOT NULL) AS step_layer
FROM (
  SELECT *, layer = min(layer) OVER (PARTITION BY position) AS first,
    layer = max(layer) OVER (PARTITION BY position) AS last
  FROM logs
) l JOIN steps s ON s.position = l.position AND s.n = 1
GROUP BY l.position
ORDER BY last_error, l.position;
