#include "sweep/errors.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "model/scheme_fit.hpp"
#include "sweep/layer_walk.hpp"
#include "sweep/plan.hpp"

namespace quantmap {
namespace {

// Those who walk: local errors need the reference alone.
std::vector<Walker> walkers_under_way(const ErrorJob& job) {
  if (job.selection.needs_schemes()) return job.walkers;
  return {job.walkers[0]};
}

LayerWalk layer_walk(const ErrorJob& job, const ErrorTables& tables) {
  return {job.checkpoint, walkers_under_way(job), job.windows, tables.slots(), 0};
}

class ErrorSweep {
 public:
  explicit ErrorSweep(const ErrorJob& job)
      : job_(job),
        windows_(*job.windows),
        layers_(job.checkpoint->config().layers),
        tables_(job.checkpoint->config(), job.walkers, job.selection) {}

  std::vector<SiteError> run(const SweepPlan& plan) {
    const auto total = static_cast<std::int64_t>(windows_.size());
    double tokens = 0;
    for (const EvalWindow& window : windows_) tokens += static_cast<double>(window.ids.size());
    const bool walk = job_.selection.needs_text() && total > 0;
    weight_step_ = walk ? tokens / 50 : 1;  // of a layer's weights, against its passes
    total_work_ = (weight_step_ + (walk ? tokens : 0)) * layers_;
    if (job_.selection.has(TensorKind::weight)) measure_weights();
    done_ = weight_step_ * layers_;
    if (walk) {
      LayerWalk layers = layer_walk(job_, tables_);
      layers.windows_per_pass = plan.windows_per_pass;
      walk_layers(
          layers, [&](double work) { step(work); },
          [&](int layer, std::int64_t, const LayerTensors& tensors) {
            tables_.measure_layer(layer, tensors, *job_.checkpoint);
          });
    }
    if (job_.progress) job_.progress(total_work_, total_work_);
    return tables_.rows();
  }

 private:
  void measure_weights() {
    for (int layer = 0; layer < layers_; ++layer) {
      step(weight_step_);
      tables_.measure_weights(layer, *job_.checkpoint);
    }
    tables_.measure_head_weights(*job_.checkpoint);
  }

  void step(double work) {
    if (job_.interrupted && job_.interrupted()) throw Error(ErrorKind::interrupted, "interrupted");
    if (job_.progress) job_.progress(done_, total_work_);
    done_ += work;
  }

  const ErrorJob& job_;
  const std::vector<EvalWindow>& windows_;
  const int layers_;
  ErrorTables tables_;
  double weight_step_ = 0, done_ = 0, total_work_ = 0;
};

}  // namespace

SweepPlan plan_errors(const ErrorJob& job, std::int64_t memory) {
  const ModelConfig& config = job.checkpoint->config();
  require_whole_blocks(job.walkers, config);
  const ErrorTables tables(config, job.walkers, job.selection);
  const int threads = thread_count();
  const auto schemes = static_cast<std::int64_t>(job.walkers.size()) - 1;
  if (job.windows->empty() || !job.selection.needs_text()) {
    SweepPlan plan;
    plan.bytes = plan.least_bytes = tables.bytes_needed({}, 0, threads);
    return plan;
  }
  const LayerWalk walk = layer_walk(job, tables);
  return plan_passes(*job.windows, schemes, memory, [&](std::int64_t n) {
    const PassLimits limits = limits_of(*job.windows, n);
    return layer_walk_bytes(walk, limits, threads) + tables.bytes_needed(limits, n, threads);
  });
}

std::vector<SiteError> measure_errors(const ErrorJob& job, const SweepPlan& plan) {
  return ErrorSweep(job).run(plan);
}

}  // namespace quantmap
