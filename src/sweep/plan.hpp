// How windows are grouped into passes, for every kind of sweep.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "evals/protocol.hpp"
#include "model/forward.hpp"
#include "sweep/sweep.hpp"

namespace quantmap {

// Of any `count` of the windows: the longest ones bound them.
PassLimits limits_of(const std::vector<EvalWindow>& windows, std::int64_t count);

// The largest passes of even size that fit in `memory`; bytes_for(n): what a pass of n windows takes, growing
// with n. Throws Error (usage) naming the least possible size if not even one window fits.
SweepPlan plan_passes(const std::vector<EvalWindow>& windows, std::int64_t schemes, std::int64_t memory,
                      const std::function<std::int64_t(std::int64_t n)>& bytes_for);

}  // namespace quantmap
