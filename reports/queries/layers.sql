-- Where does the error grow? The residual stream after each layer, scheme by scheme, in the latest run
SELECT scheme, layer, scope, row_error_p50, row_error_p90, rel_error, rel_error_rest, cosine, status
FROM layer_errors
WHERE run = (SELECT max(run) FROM layer_errors) AND site = 'model.layers.' || layer || ' output'
ORDER BY position, layer, scope;
