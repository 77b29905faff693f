-- What share of each site's squared error do massive values, the rows that hold them and first tokens carry?
SELECT scheme, layer, site, rel_error, massive_values, massive_rows, first_tokens, rest_rel_error, rest_massive_values,
  status
FROM outlier_shares
WHERE run = (SELECT max(run) FROM outlier_shares)
ORDER BY position, error2 IS NULL, error2 DESC, layer, site;
