-- Which schemes of the latest complete run change the model least (by KL), and what does each weigh?
SELECT scheme, kl_mean, kl_stderr, kl_p99, top1_agreement, ppl, ppl_stderr, bpw_model, weight_bytes,
  kv_bytes_per_token, spec, status
FROM evaluations
WHERE run = (SELECT max(run) FROM evaluations)
ORDER BY kl_mean IS NULL, kl_mean, weight_bytes, position;
