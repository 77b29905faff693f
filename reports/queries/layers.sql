-- Where does the error grow? The residual stream after each layer, scheme by scheme, in the latest run
-- :run integer: a run other than the latest with error tables
SELECT scheme, layer, scope, row_error_p50, row_error_p90, rel_error, rel_error_rest, cosine, status
FROM layer_errors
WHERE run = coalesce(
    :run, (SELECT max(run) FROM runs WHERE EXISTS (SELECT 1 FROM layer_errors e WHERE e.run = runs.run)))
  AND site = 'model.layers.' || layer || ' output'
ORDER BY position, layer, scope;
