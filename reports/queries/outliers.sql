-- Which places of the latest run's reference pass hold the largest values, and are they massive activations?
-- :run integer: a run other than the latest that has them
WITH latest AS (
  SELECT * FROM outliers
  WHERE run = coalesce(
    :run, (SELECT max(run) FROM runs WHERE EXISTS (SELECT 1 FROM outliers o WHERE o.run = runs.run)))
)
SELECT largest.site, layer, value, ratio, median_abs, massive, windows_massive, windows_seen, window, token, channel,
  status
FROM (
  SELECT *, row_number() OVER (PARTITION BY site ORDER BY abs(value) DESC, window, token, channel) AS rank FROM latest
) largest
JOIN (
  SELECT site, count(DISTINCT window) FILTER (WHERE massive) AS windows_massive, count(DISTINCT window) AS windows_seen
  FROM latest GROUP BY site
) counts ON counts.site = largest.site
WHERE rank = 1
ORDER BY abs(value) DESC, layer, largest.site;
