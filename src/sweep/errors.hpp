// The error sweep: the reference and every scheme walk through the model together, and after each layer the
// error tables are taken from what its hooks showed (sweep/error_tables.hpp). A capture of the reference
// stands in for the model where local errors are asked for: the same tables, to the bit.
#pragma once

#include <functional>
#include <vector>

#include "capture/reader.hpp"
#include "checkpoint/checkpoint.hpp"
#include "evals/protocol.hpp"
#include "sweep/error_tables.hpp"
#include "sweep/sweep.hpp"

namespace quantmap {

struct ErrorJob {
  const Checkpoint* checkpoint = nullptr;  // this, or
  // a capture of whole windows: only what it holds is measured, and selection has no inherited or total
  // errors and no attention_weights or attention_output, which need the model (captured_kinds).
  const Capture* capture = nullptr;
  std::vector<Walker> walkers;                       // [0]: the reference
  const std::vector<EvalWindow>* windows = nullptr;  // empty: only weights are measured
  ErrorSelection selection;
  std::function<void(double done, double total)> progress;  // may be empty
  std::function<bool()> interrupted;                        // asked between layers; may be empty
};

// What a capture can give.
ErrorSelection captured_kinds();

// As plan_sweep, with what the tables need.
SweepPlan plan_errors(const ErrorJob& job, std::int64_t memory);
// Throws Error (interrupted) if job.interrupted says so.
std::vector<SiteError> measure_errors(const ErrorJob& job, const SweepPlan& plan);

}  // namespace quantmap
