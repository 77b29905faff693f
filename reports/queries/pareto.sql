-- Which schemes does no other beat, in weight bytes, cache bytes and KL at once?
-- :run integer: a run other than the latest complete one
WITH measured AS (
  SELECT * FROM evaluations
  WHERE run = coalesce(:run, (SELECT max(run) FROM evaluations))
    AND kl_mean IS NOT NULL AND weight_bytes IS NOT NULL AND kv_bytes_per_token IS NOT NULL
)
SELECT scheme, weight_bytes, kv_bytes_per_token, kl_mean, kl_stderr, bpw_model, ppl, spec, status
FROM measured a
WHERE NOT EXISTS (
  SELECT 1 FROM measured b
  WHERE b.weight_bytes <= a.weight_bytes AND b.kv_bytes_per_token <= a.kv_bytes_per_token AND b.kl_mean <= a.kl_mean
    AND (b.weight_bytes < a.weight_bytes OR b.kv_bytes_per_token < a.kv_bytes_per_token OR b.kl_mean < a.kl_mean)
)
ORDER BY weight_bytes, kv_bytes_per_token, kl_mean, position;
