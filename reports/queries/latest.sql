-- What did the latest complete run measure, row by row?
-- :run integer: a run other than the latest complete one
SELECT scheme, kl_mean, kl_stderr, top1_agreement, ppl, ppl_stderr, ln_ppl_ratio, ln_ppl_ratio_stderr, kl_p50, kl_p90,
       kl_p99, kl_p999, kl_max, kl_infinite, tv_mean, top1_stderr, margin_flips, delta_p_mean, delta_p_rms, nll, nll_stderr,
       bpw_quantized, bpw_model, weight_bytes, kv_bytes_per_token, tokens_scored, windows, seconds, status, run, spec
FROM evaluations
WHERE run = coalesce(:run, (SELECT max(run) FROM evaluations))
ORDER BY position;
