-- What share of each site's squared error do massive values, the rows that hold them and first tokens carry?
-- :run integer: a run other than the latest of `outliers` with schemes
SELECT scheme, layer, site, rel_error, massive_values, massive_rows, first_tokens, rest_rel_error, rest_massive_values,
  status
FROM outlier_shares
WHERE run = coalesce(
  :run, (SELECT max(run) FROM runs WHERE EXISTS (SELECT 1 FROM outlier_shares o WHERE o.run = runs.run)))
ORDER BY position, error2 IS NULL, error2 DESC, layer, site;
