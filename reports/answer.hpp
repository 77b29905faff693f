// The sentences that come first: which scheme to take, computed from one run's evaluations.
#pragma once

#include <string>
#include <vector>

#include "core/number.hpp"
#include "reports/report_data.hpp"

namespace quantmap {

inline constexpr double kDefaultMaxKl = 0.01;  // nats a token

// The one-sided 95 % upper bound of a scheme's mean KL: mean + t(0.95, windows - 1) stderr. Undefined where
// the mean or its error is, and where the KL of a token is infinite.
Number kl_upper_bound(const EvaluationRecord& row);

// The smallest scheme (bytes of weights, then of the cache, then KL) whose upper bound is below max_kl, what
// it saves, what hurts least, and which neighbours by KL the run's comparisons do not tell apart (paired over
// windows, Holm's control over every pair). Where nothing can be recommended, why.
Answer answer(const ReportEvaluation& evaluation, double max_kl);

}  // namespace quantmap
