"""Student's t, McNemar, Holm, paired and unpaired differences and bootstrap intervals by SciPy and statsmodels:
implementations that are not ours.

    python3 -m venv V; V/bin/pip install scipy==1.17.1 statsmodels==0.15.0
    V/bin/python make_statistics.py > statistics.json

A window is [sum over its tokens, tokens]. Doubles are written in full, so that both sides start from the same bits.
"""
import json
import sys

import numpy
import scipy
import scipy.stats
import statsmodels
import statsmodels.api
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

random = numpy.random.default_rng(20261207)


def student_t():
    rows = []
    for degrees in (1, 2, 3, 7, 19, 78, 591, 1e6, 2.5):
        for p in (0.5, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9999, 0.025):
            rows.append({"degrees": degrees, "p": p, "quantile": scipy.stats.t.ppf(p, degrees)})
    tails = [{"degrees": degrees, "t": t, "two_sided": 2 * scipy.stats.t.sf(abs(t), degrees)}
             for degrees in (1, 4, 19, 78, 591) for t in (0.0, 0.3, -1.0, 2.0, -5.5, 40.0)]
    return {"quantiles": rows, "tails": tails}


def mcnemar_tests():
    rows = []
    for only_a, only_b in ((0, 0), (1, 0), (0, 5), (3, 3), (10, 4), (6, 16), (59, 86), (150, 100), (1000, 1100)):
        test = mcnemar([[7, only_a], [only_b, 9]], exact=True)
        rows.append({"only_a": only_a, "only_b": only_b, "p": float(test.pvalue)})
    return rows


def holm_tests():
    cases = [[0.01, 0.04, 0.03, 0.005], [0.5], [0.9, 0.9, 0.9], [1e-12, 0.2, 0.011, 0.011, 0.6, 0.049],
             list(random.uniform(0, 1, 40) ** 3)]
    return [{"p": p, "adjusted": list(multipletests(p, method="holm")[1])} for p in cases]


def windows(count, low, high):
    """Token values of two schemes in windows of `low` to `high` tokens; windows share a level."""
    a, b, window = [], [], []
    for w in range(count):
        level = random.gamma(2.0)
        for _ in range(random.integers(low, high + 1)):
            noise = random.normal()
            a.append(level + noise + random.normal(0.05, 0.2))
            b.append(level + noise)
            window.append(w)
    return numpy.array(a), numpy.array(b), numpy.array(window)


def sums(values, window):
    return [[float(values[window == w].sum()), int((window == w).sum())] for w in range(window.max() + 1)]


def paired_case(count, low, high):
    a, b, window = windows(count, low, high)
    # The mean with an error clustered by window: least squares on a constant, C/(C-1) its correction.
    fit = statsmodels.api.OLS(a - b, numpy.ones(len(a))).fit(
        cov_type="cluster", cov_kwds={"groups": window, "use_correction": True}, use_t=True)
    low_end, high_end = fit.conf_int(0.05)[0]
    row = {"a": sums(a, window), "b": sums(b, window), "difference": fit.params[0], "stderr": fit.bse[0],
           "degrees": count - 1, "low": low_end, "high": high_end, "p": float(fit.pvalues[0])}
    needed = count
    while scipy.stats.t.ppf(0.975, needed - 1) * fit.bse[0] * (count / needed) ** 0.5 >= abs(fit.params[0]):
        needed += 1
    row["more_windows"] = needed - count
    return row


def equal_windows(count, tokens):
    """Windows of one length: what t-tests on window means give."""
    a, b, window = windows(count, tokens, tokens)
    means_a, means_b = (numpy.array([x[window == w].mean() for w in range(count)]) for x in (a, b))
    paired, unpaired = scipy.stats.ttest_rel(means_a, means_b), scipy.stats.ttest_ind(means_a, means_b, equal_var=False)
    rows = []
    for test in (paired, unpaired):
        interval = test.confidence_interval(0.95)
        rows.append({"difference": float(means_a.mean() - means_b.mean()), "degrees": float(test.df), "p": float(test.pvalue),
                     "low": float(interval.low), "high": float(interval.high)})
    return {"a": sums(a, window), "b": sums(b, window), "paired": rows[0], "unpaired": rows[1]}


def bootstrap_case(count, shape):
    values = random.gamma(shape, size=count)
    interval = scipy.stats.bootstrap((values,), numpy.mean, n_resamples=200_000, method="percentile", batch=10_000,
                                     rng=numpy.random.default_rng(1)).confidence_interval
    return {"windows": list(values), "low": float(interval.low), "high": float(interval.high),
            "stderr": float(values.std() / count ** 0.5)}


golden = {
    "made_with": {"python": sys.version.split()[0], "numpy": numpy.__version__, "scipy": scipy.__version__,
                  "statsmodels": statsmodels.__version__},
    "student_t": student_t(),
    "mcnemar": mcnemar_tests(),
    "holm": holm_tests(),
    "paired": [paired_case(2, 4, 4), paired_case(5, 1, 9), paired_case(20, 30, 30), paired_case(79, 1, 20)],
    "equal_windows": [equal_windows(12, 5), equal_windows(40, 3)],
    "bootstrap": [bootstrap_case(12, 1.0), bootstrap_case(79, 0.5), bootstrap_case(300, 2.0)],
}
print("{" + ",\n ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in golden.items()) + "}")
