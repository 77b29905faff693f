-- At each kind of place, which format does the least damage, over all layers of the latest run with errors?
-- :run integer: a run other than the latest
-- :scope text: local (the default), inherited or total
-- A format's own tensors: weights, inputs, cache; the formats of both for a Linear's output. error: the median row's, its
-- mean over the layers. Schemes that share a format at a kind of place are one line.
WITH
  errors AS (
    SELECT m.kind, m.module, m.layer, m.saturated, m.nonfinite, coalesce(m.row_error_p50, m.rel_error) AS error,
      CASE
        WHEN m.kind = 'weight' THEN s.weights
        WHEN m.kind = 'activation' AND m.module <> 'layer' THEN s.activations
        WHEN m.kind IN ('key', 'value', 'attention_weights') THEN s.kv
        WHEN m.kind = 'output' THEN s.weights || ' x ' || s.activations
        ELSE s.scheme
      END AS format
    FROM layer_error_map m JOIN schemes s ON s.run = m.run AND s.position = m.position
    WHERE m.run = coalesce(
        :run, (SELECT max(run) FROM runs WHERE EXISTS (SELECT 1 FROM layer_errors e WHERE e.run = runs.run)))
      AND m.position > 0 AND m.scope = coalesce(:scope, 'local')
  ),
  formats AS (
    SELECT kind, module, format, count(DISTINCT layer) AS layers, avg(error) AS error, max(error) AS worst_error,
      layer AS worst_layer, sum(saturated) AS saturated, sum(nonfinite) AS nonfinite,
      count(*) FILTER (WHERE error IS NULL) AS undefined
    FROM errors
    WHERE format NOT IN ('bf16', 'bf16 x bf16')
    GROUP BY kind, module, format
  )
SELECT kind, module, rank() OVER (PARTITION BY kind, module ORDER BY error IS NULL, error) AS rank, format, error,
  worst_error, worst_layer, layers, saturated, nonfinite, undefined
FROM formats
ORDER BY kind, module, rank, format;
