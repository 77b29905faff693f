-- Which schemes of the latest run can the data tell apart, and how many more windows would settle the rest?
-- :run integer: a run other than the latest with comparisons
-- :metric text: kl_mean (the default) or ln_ppl_ratio
-- Paired by window; p_holm: after Holm's correction over all pairs of the metric; low, high: 95 % of each pair alone.
SELECT scheme, verdict, than_scheme, difference, low, high, p_holm, more_windows, windows, bootstrap_low, bootstrap_high
FROM comparisons
WHERE run = coalesce(:run, (SELECT max(run) FROM comparisons)) AND metric = coalesce(:metric, 'kl_mean')
ORDER BY than, position;
