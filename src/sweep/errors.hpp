// The error sweep: the reference and every scheme walk through the model together, and after each layer the
// error tables are taken from what its hooks showed (sweep/error_tables.hpp).
#pragma once

#include <functional>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "evals/protocol.hpp"
#include "sweep/error_tables.hpp"
#include "sweep/sweep.hpp"

namespace quantmap {

struct ErrorJob {
  const Checkpoint* checkpoint = nullptr;
  std::vector<Walker> walkers;                       // [0]: the reference
  const std::vector<EvalWindow>* windows = nullptr;  // empty: only weights are measured
  ErrorSelection selection;
  std::function<void(double done, double total)> progress;  // may be empty
  std::function<bool()> interrupted;                        // asked between layers; may be empty
};

// As plan_sweep, with what the tables need.
SweepPlan plan_errors(const ErrorJob& job, std::int64_t memory);
// Throws Error (interrupted) if job.interrupted says so.
std::vector<SiteError> measure_errors(const ErrorJob& job, const SweepPlan& plan);

}  // namespace quantmap
