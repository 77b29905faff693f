// The outlier sweep: the reference walks through the model, and after each layer its tensors are judged
// (sweep/outlier_tables.hpp).
#pragma once

#include <functional>
#include <vector>

#include "capture/reader.hpp"
#include "checkpoint/checkpoint.hpp"
#include "evals/protocol.hpp"
#include "sweep/outlier_tables.hpp"
#include "sweep/sweep.hpp"

namespace quantmap {

struct OutlierJob {
  const Checkpoint* checkpoint = nullptr;  // this, or
  const Capture* capture = nullptr;  // a capture of whole windows: of what it holds, the same to the bit
  std::vector<Walker> walkers;       // [0]: the reference, the only one that walks; then the formats to judge
  const std::vector<EvalWindow>* windows = nullptr;
  std::function<void(double done, double total)> progress;  // may be empty
  std::function<bool()> interrupted;                        // asked between layers; may be empty
};

struct OutlierResult {
  std::vector<SiteOutliers> sites;
  std::vector<OutlierShare> shares;
};

// As plan_sweep, with what the tables need.
SweepPlan plan_outliers(const OutlierJob& job, std::int64_t memory);
// Throws Error (interrupted) if job.interrupted says so.
OutlierResult measure_outliers(const OutlierJob& job, const SweepPlan& plan);

}  // namespace quantmap
