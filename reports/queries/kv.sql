-- What do KV cache formats cost in the latest complete run, and what do they save?
-- :run integer: a run other than the latest complete one
-- kl_bf16_kv: the same scheme with the cache left in BF16, found by its spelling, where the run has it.
WITH
  latest AS (SELECT * FROM evaluations WHERE run = coalesce(:run, (SELECT max(run) FROM evaluations))),
  quantized AS (
    SELECT *, ',' || CASE WHEN kv LIKE 'k=%' THEN kv ELSE 'kv=' || kv END AS part FROM latest WHERE kv <> 'bf16'
  )
SELECT q.kv, q.weights, q.activations, q.kl_mean, q.kl_stderr, b.kl_mean AS kl_bf16_kv, q.top1_agreement, q.ppl,
  q.kv_bytes_per_token, b.kv_bytes_per_token AS bytes_bf16_kv, q.scheme, q.status
FROM quantized q LEFT JOIN latest b
  ON b.kv = 'bf16' AND b.spec IN (replace(q.spec, q.part, ',kv=bf16'), replace(q.spec, q.part, ''))
ORDER BY q.weights = 'bf16' DESC, q.weights, q.activations, q.kl_mean IS NULL, q.kl_mean, q.position;
