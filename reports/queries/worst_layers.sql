-- Which places does each scheme of the latest run hurt most, by the error of the median row?
-- :run integer: a run other than the latest with error tables
-- :places integer: how many of each scheme (5)
SELECT scheme, rank, layer, site, kind, scope, row_error_p50, rel_error, rel_error_rest, saturated, nonfinite, status
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY position
    ORDER BY coalesce(row_error_p50, rel_error) IS NULL, coalesce(row_error_p50, rel_error) DESC, layer, site, kind, scope
  ) AS rank
  FROM layer_errors
  -- Not the sums over many places; attention weights have a divergence, which no error compares with.
  WHERE run = coalesce(
      :run, (SELECT max(run) FROM runs WHERE EXISTS (SELECT 1 FROM layer_errors e WHERE e.run = runs.run)))
    AND position > 0 AND site <> 'all' AND kind <> 'attention_weights'
)
WHERE rank <= coalesce(:places, 5)
ORDER BY position, rank;
