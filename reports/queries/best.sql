-- Which schemes under a size change the model least (by KL), and what does each weigh?
-- :run integer: a run other than the latest complete one
-- :max_gib number: no more than this many GiB, weights and cached tokens together
-- :max_bpw number: no more bits per parameter of the whole model
-- :tokens integer: cached tokens that count in the size (0)
WITH sized AS (
  SELECT *, (weight_bytes + coalesce(:tokens, 0) * kv_bytes_per_token) / 1073741824.0 AS gib
  FROM evaluations WHERE run = coalesce(:run, (SELECT max(run) FROM evaluations))
)
SELECT scheme, kl_mean, kl_stderr, kl_p99, top1_agreement, ppl, ppl_stderr, gib, bpw_model, weight_bytes,
  kv_bytes_per_token, spec, status
FROM sized
WHERE (:max_gib IS NULL OR gib <= :max_gib) AND (:max_bpw IS NULL OR bpw_model <= :max_bpw)
ORDER BY kl_mean IS NULL, kl_mean, weight_bytes, position;
