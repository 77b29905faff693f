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

const ModelConfig& config_of(const ErrorJob& job) {
  return job.capture ? job.capture->config() : job.checkpoint->config();
}

LayerWalk layer_walk(const ErrorJob& job, const ErrorTables& tables) {
  return {job.checkpoint, walkers_under_way(job), job.windows, tables.slots(), 0, job.capture};
}

// The site of a table, from what the capture holds? A Linear's output takes its input and weights, too.
bool captured(const Capture& capture, const std::string& site) {
  const auto module = site.substr(0, site.find(' '));
  const bool weight =
      capture.find(module + ".weight") || (module == kHead && capture.config().tied_embeddings &&
                                           capture.find(std::string(kEmbedding) + ".weight"));
  if (site.ends_with(" weight")) return weight;
  if (!capture.has(site)) return false;
  return !site.ends_with("_proj output") || (weight && capture.has(module + " input"));
}

ErrorSelection selection_of(const ErrorJob& job) {
  ErrorSelection selection = job.selection;
  if (!job.capture) return selection;
  selection.site = [capture = job.capture, chosen = job.selection.site](const std::string& site) {
    return (!chosen || chosen(site)) && captured(*capture, site);
  };
  return selection;
}

class ErrorSweep {
 public:
  explicit ErrorSweep(const ErrorJob& job)
      : job_(job),
        windows_(*job.windows),
        layers_(config_of(job).layers),
        source_(job.capture ? static_cast<const TensorSource&>(*job.capture) : *job.checkpoint),
        tables_(config_of(job), job.walkers, selection_of(job)) {}

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
            tables_.measure_layer(layer, tensors, source_);
          });
    }
    if (job_.progress) job_.progress(total_work_, total_work_);
    return tables_.rows();
  }

 private:
  void measure_weights() {
    for (int layer = 0; layer < layers_; ++layer) {
      step(weight_step_);
      tables_.measure_weights(layer, source_);
    }
    tables_.measure_head_weights(source_);
  }

  void step(double work) {
    if (job_.interrupted && job_.interrupted()) throw Error(ErrorKind::interrupted, "interrupted");
    if (job_.progress) job_.progress(done_, total_work_);
    done_ += work;
  }

  const ErrorJob& job_;
  const std::vector<EvalWindow>& windows_;
  const int layers_;
  const TensorSource& source_;
  ErrorTables tables_;
  double weight_step_ = 0, done_ = 0, total_work_ = 0;
};

}  // namespace

ErrorSelection captured_kinds() {
  ErrorSelection selection = ErrorSelection::everything();
  selection.scopes = {true, false, false};
  for (const TensorKind kind : {TensorKind::attention_weights, TensorKind::attention_output})
    selection.kinds[static_cast<std::size_t>(kind)] = false;
  return selection;
}

SweepPlan plan_errors(const ErrorJob& job, std::int64_t memory) {
  const ModelConfig& config = config_of(job);
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
