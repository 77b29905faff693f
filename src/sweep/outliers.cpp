#include "sweep/outliers.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "model/scheme_fit.hpp"
#include "sweep/layer_walk.hpp"
#include "sweep/plan.hpp"

namespace quantmap {
namespace {

const ModelConfig& config_of(const OutlierJob& job) {
  return job.capture ? job.capture->config() : job.checkpoint->config();
}

LayerWalk layer_walk(const OutlierJob& job) {
  return {job.checkpoint, {job.walkers[0]}, job.windows, OutlierTables::slots(), 0, job.capture};
}

}  // namespace

SweepPlan plan_outliers(const OutlierJob& job, std::int64_t memory) {
  require_whole_blocks(job.walkers, config_of(job));
  const OutlierTables tables(config_of(job), job.walkers);
  const LayerWalk walk = layer_walk(job);
  const int threads = thread_count();
  const auto schemes = static_cast<std::int64_t>(job.walkers.size()) - 1;
  return plan_passes(*job.windows, schemes, memory, [&](std::int64_t n) {
    const PassLimits limits = limits_of(*job.windows, n);
    return layer_walk_bytes(walk, limits, threads) + tables.bytes_needed(limits, n, threads);
  });
}

OutlierResult measure_outliers(const OutlierJob& job, const SweepPlan& plan) {
  OutlierTables tables(config_of(job), job.walkers);
  LayerWalk walk = layer_walk(job);
  walk.windows_per_pass = plan.windows_per_pass;
  double done = 0, total = 0;
  for (const EvalWindow& window : *job.windows) total += static_cast<double>(window.ids.size());
  total *= config_of(job).layers;
  const auto begin = [&](double tokens) {
    if (job.interrupted && job.interrupted()) throw Error(ErrorKind::interrupted, "interrupted");
    if (job.progress) job.progress(done, total);
    done += tokens;
  };
  walk_layers(walk, begin, [&](int layer, std::int64_t first_window, const LayerTensors& tensors) {
    tables.measure_layer(layer, first_window, tensors);
  });
  if (job.progress) job.progress(total, total);
  return {tables.sites(), tables.shares()};
}

}  // namespace quantmap
