-- Does a cheap layer error predict the dear KL? Rank correlations over layers, within bits, over all schemes
-- :run integer: the run whose KL is predicted, other than the latest complete one
-- :errors integer: the run whose layer errors predict, other than the latest of the same model and schemes
-- :min_bpw number: with max_bpw, one bit budget (bits per quantized weight) in place of each whole number of bits
-- :max_bpw number: the other end, itself counted
-- Schemes are paired by their full spelling: a run of `error` may hold the errors, a run of `eval` the KL; where both have
-- a scope and kind, that of `error` counts. A scheme's error is the mean over the places that it changes (rho), or the
-- worst of them (rho_worst); what is better when large (sqnr_db, cosine) is turned round, so 1 always says: the metric
-- tells the order. `layers at …`: schemes of one format that differ only in what they quantize. Spearman's rho, ties at
-- their mean rank; rho_low and rho_high: 95 %, Fisher's z with the variance of Bonett and Wright (2000), from 4 schemes on.
WITH
  chosen AS (SELECT run, model_sha256 FROM runs WHERE run = coalesce(:run, (SELECT max(run) FROM evaluations))),
  dear AS (
    SELECT e.run, e.position, e.spec, e.kl_mean, e.bpw_quantized, e.weights || ' | ' || e.activations || ' | ' || e.kv AS format
    FROM evaluations e JOIN chosen c ON c.run = e.run
    WHERE e.position > 0 AND e.kl_mean IS NOT NULL
  ),
  -- Where a scheme's errors may be: the run itself, and the latest other one of the same model that has them.
  others AS (
    SELECT d.position, max(s.run) AS run
    FROM dear d JOIN schemes s ON s.spec = d.spec AND s.run <> d.run JOIN runs r ON r.run = s.run
    WHERE r.model_sha256 = (SELECT model_sha256 FROM chosen) AND s.position > 0 AND (:errors IS NULL OR s.run = :errors)
      AND EXISTS (SELECT 1 FROM layer_errors e WHERE e.run = s.run AND e.position = s.position)
    GROUP BY d.position
  ),
  sources AS (
    SELECT d.position, s.run, s.position AS source, 1 AS other
    FROM dear d JOIN others o ON o.position = d.position JOIN schemes s ON s.run = o.run AND s.spec = d.spec
    UNION ALL SELECT position, run, position, 0 FROM dear WHERE :errors IS NULL OR run = :errors
  ),
  places AS (
    SELECT *, max(other) OVER (PARTITION BY position, scope, kind) AS preferred
    FROM (
      SELECT s.position, s.other, e.run AS errors_run, e.scope, e.kind, e.row_error_p50, e.row_error_p90, e.rel_error,
        e.rel_error_rest, e.rel_error_residual, -e.sqnr_db AS sqnr, 1 - e.cosine AS cosine, e.max_abs_error
      FROM sources s JOIN layer_errors e ON e.run = s.run AND e.position = s.source
      WHERE e.site <> 'all' AND (e.rel_error <> 0 OR e.row_error_p90 <> 0)
    )
  ),
  cheap AS (
    SELECT position, errors_run, scope, kind, avg(row_error_p50) AS p50, max(row_error_p50) AS p50_worst,
      avg(row_error_p90) AS p90, max(row_error_p90) AS p90_worst, avg(rel_error) AS pooled, max(rel_error) AS pooled_worst,
      avg(rel_error_rest) AS rest, max(rel_error_rest) AS rest_worst, avg(rel_error_residual) AS residual,
      max(rel_error_residual) AS residual_worst, avg(sqnr) AS sqnr, max(sqnr) AS sqnr_worst, avg(cosine) AS cosine,
      max(cosine) AS cosine_worst, avg(max_abs_error) AS largest, max(max_abs_error) AS largest_worst
    FROM places WHERE other = preferred
    GROUP BY position, scope, kind
  ),
  metrics AS (
    SELECT position, errors_run, scope, kind, 'row_error_p50' AS metric, p50 AS x, p50_worst AS worst FROM cheap
    UNION ALL SELECT position, errors_run, scope, kind, 'row_error_p90', p90, p90_worst FROM cheap
    UNION ALL SELECT position, errors_run, scope, kind, 'rel_error', pooled, pooled_worst FROM cheap
    UNION ALL SELECT position, errors_run, scope, kind, 'rel_error_rest', rest, rest_worst FROM cheap
    UNION ALL SELECT position, errors_run, scope, kind, 'rel_error_residual', residual, residual_worst FROM cheap
    UNION ALL SELECT position, errors_run, scope, kind, 'sqnr_db', sqnr, sqnr_worst FROM cheap
    UNION ALL SELECT position, errors_run, scope, kind, 'cosine', cosine, cosine_worst FROM cheap
    UNION ALL SELECT position, errors_run, scope, kind, 'max_abs_error', largest, largest_worst FROM cheap
  ),
  groups AS (
    SELECT position, kl_mean, 'all schemes' AS across FROM dear
    UNION ALL
    SELECT position, kl_mean, 'layers at ' || format FROM dear
    UNION ALL
    SELECT position, kl_mean,
      CASE WHEN :min_bpw IS NULL AND :max_bpw IS NULL
        THEN printf('%d to %d bits', CAST(bpw_quantized AS INTEGER), CAST(bpw_quantized AS INTEGER) + 1)
        ELSE printf('%g to %g bits', coalesce(:min_bpw, 0), coalesce(:max_bpw, 32)) END
    FROM dear
    WHERE bpw_quantized >= coalesce(:min_bpw, 0) AND bpw_quantized <= coalesce(:max_bpw, 32)
  ),
  pairs AS (
    SELECT g.across, m.errors_run, m.scope, m.kind, m.metric, m.x, m.worst, g.kl_mean AS y
    FROM groups g JOIN metrics m ON m.position = g.position
    WHERE m.x IS NOT NULL
  ),
  ranked AS (
    SELECT across, errors_run, scope, kind, metric, count(*) OVER whole AS n,
      rank() OVER (whole ORDER BY x) + (count(*) OVER (PARTITION BY across, scope, kind, metric, x) - 1) / 2.0
        - (count(*) OVER whole + 1) / 2.0 AS rx,
      rank() OVER (whole ORDER BY worst) + (count(*) OVER (PARTITION BY across, scope, kind, metric, worst) - 1) / 2.0
        - (count(*) OVER whole + 1) / 2.0 AS rw,
      rank() OVER (whole ORDER BY y) + (count(*) OVER (PARTITION BY across, scope, kind, metric, y) - 1) / 2.0
        - (count(*) OVER whole + 1) / 2.0 AS ry
    FROM pairs
    WINDOW whole AS (PARTITION BY across, scope, kind, metric)
  ),
  correlated AS (
    SELECT across, scope, kind, metric, n AS schemes, sum(rx * ry) / nullif(sqrt(sum(rx * rx) * sum(ry * ry)), 0) AS rho,
      sum(rw * ry) / nullif(sqrt(sum(rw * rw) * sum(ry * ry)), 0) AS rho_worst, max(errors_run) AS errors_run
    FROM ranked WHERE n > 2
    GROUP BY across, scope, kind, metric
  ),
  intervals AS (
    SELECT *, CASE WHEN schemes > 3 AND abs(rho) < 1 THEN 1.96 * sqrt((1 + rho * rho / 2) / (schemes - 3)) END AS half
    FROM correlated
  )
SELECT across, scope, kind, metric, schemes, rho, tanh(atanh(rho) - half) AS rho_low, tanh(atanh(rho) + half) AS rho_high,
  rho_worst, errors_run, CASE WHEN rho IS NULL THEN 'undefined: all ranks are equal' ELSE 'ok' END AS status
FROM intervals
ORDER BY across, rho IS NULL, rho DESC, scope, kind, metric;
