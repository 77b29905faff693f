#include "sweep/errors.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "sweep/plan.hpp"

namespace quantmap {
namespace {

// Those who walk: local errors need the reference alone.
std::vector<Walker> walkers_under_way(const ErrorJob& job) {
  if (job.selection.needs_schemes()) return job.walkers;
  return {job.walkers[0]};
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
    if (walk) run_passes(plan, total);
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

  void run_passes(const SweepPlan& plan, std::int64_t total) {
    const PassLimits limits = limits_of(windows_, plan.windows_per_pass);
    Forward forward(*job_.checkpoint, walkers_under_way(job_), limits);
    LayerTensors tensors(job_.checkpoint->config(), static_cast<int>(forward.walkers().size()),
                         tables_.slots(), limits.tokens);
    forward.set_hook([&](const SiteView& view) { tensors.record(view); });
    for (std::int64_t first = 0; first < total; first += plan.windows_per_pass)
      run_pass(forward, tensors, first, std::min(total, first + plan.windows_per_pass));
  }

  void run_pass(Forward& forward, LayerTensors& tensors, std::int64_t first, std::int64_t end) {
    std::vector<PassWindow> windows;
    std::vector<std::int64_t> lengths;
    double tokens = 0;
    for (std::int64_t w = first; w < end; ++w) {
      const auto& ids = windows_[static_cast<std::size_t>(w)].ids;
      windows.push_back({w, ids});
      lengths.push_back(static_cast<std::int64_t>(ids.size()));
      tokens += static_cast<double>(ids.size());
    }
    tensors.start(first, std::move(lengths));
    forward.start(std::move(windows));
    for (int layer = 0; layer < layers_; ++layer) {
      step(tokens);
      keep_stream(forward, tensors);
      forward.run_layer(layer);
      tables_.measure_layer(layer, tensors, *job_.checkpoint);
    }
  }

  // The residual stream that the layer begins with.
  static void keep_stream(const Forward& forward, LayerTensors& tensors) {
    if (!tensors.keeps(LayerSlot::stream)) return;
    for (std::size_t window = 0; window < tensors.windows(); ++window) {
      const float* x = forward.hidden(0, window);
      std::copy(x, x + tensors.length(window) * tensors.width(LayerSlot::stream),
                tensors.rows(LayerSlot::stream, 0, window));
    }
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
  const ErrorTables tables(config, job.walkers, job.selection);
  const int threads = thread_count();
  const auto schemes = static_cast<std::int64_t>(job.walkers.size()) - 1;
  if (job.windows->empty() || !job.selection.needs_text()) {
    SweepPlan plan;
    plan.bytes = plan.least_bytes = tables.bytes_needed({}, 0, threads);
    return plan;
  }
  const std::vector<Walker> walkers = walkers_under_way(job);
  const LayerSlots slots = tables.slots();
  return plan_passes(*job.windows, schemes, memory, [&](std::int64_t n) {
    const PassLimits limits = limits_of(*job.windows, n);
    return Forward::bytes_needed(*job.checkpoint, walkers, limits, threads) +
           LayerTensors::bytes_needed(config, static_cast<int>(walkers.size()), slots, limits.tokens) +
           tables.bytes_needed(limits, n, threads);
  });
}

std::vector<SiteError> measure_errors(const ErrorJob& job, const SweepPlan& plan) {
  return ErrorSweep(job).run(plan);
}

}  // namespace quantmap
