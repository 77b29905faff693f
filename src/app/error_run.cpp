#include "app/error_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/capture_input.hpp"
#include "app/evaluation_records.hpp"
#include "app/interrupt.hpp"
#include "app/outdated.hpp"
#include "core/error.hpp"
#include "core/progress.hpp"
#include "store/database.hpp"
#include "sweep/errors.hpp"

namespace quantmap {
namespace {

LayerErrorRecord error_record(const SiteError& row) {
  LayerErrorRecord record;
  record.scheme_position = row.walker;
  record.layer = row.layer;
  record.site = row.site;
  record.scope = name_of(row.scope);
  record.kind = name_of(row.kind);
  if (row.kind == TensorKind::attention_weights) {
    const DivergenceSums& kl = row.divergence;
    record.rel_error = kl.mean();
    record.max_abs_error = kl.largest();
    record.nonfinite = kl.nonfinite();
    record.count = kl.count();
    record.row_error_p50 = kl.rows().quantile(0.5);
    record.row_error_p90 = kl.rows().quantile(0.9);
    if (kl.nonfinite() > 0)
      record.status =
          fmt::format("{} of {} queries have no divergence and are left out", kl.nonfinite(), kl.count());
    return record;
  }
  fill_errors(record, row.sums.errors());
  record.rel_error_residual = row.sums.residual_error();
  record.kurtosis = row.sums.kurtosis();
  record.saturated = row.sums.saturated();
  record.rel_error_rest = row.sums.rest_error();
  if (record.status == "ok" && !record.rel_error_rest)
    record.status = row.sums.massive_rows() > 0
                        ? "rel_error_rest undefined: nothing but rows with massive activations"
                        : "rel_error_rest undefined: the reference is all zero";
  return record;
}

class ErrorRun {
 public:
  explicit ErrorRun(const ErrorRequest& request) : request_(request) {
    if (Capture::is_hdf5(request.input.model)) {
      capture_.emplace(Capture::open(request.input.model));
      input_ = captured_input(*capture_, request.selection.needs_text());
    } else {
      checkpoint_.emplace(Checkpoint::open(request.input.model));
    }
  }

  ErrorResult run() {
    ErrorResult result;
    if (checkpoint_ && request_.selection.needs_text())
      input_ = read_text_input(request_.input, *checkpoint_);
    const Compute compute = capture_ ? capture_->info().compute : request_.input.compute;
    ErrorJob job;
    if (capture_)
      job.capture = &*capture_;
    else
      job.checkpoint = &*checkpoint_;
    job.walkers = scheme_walkers(request_.schemes, compute);
    job.windows = &input_.windows;
    job.selection = request_.selection;
    const SweepPlan plan = plan_errors(job, request_.common.memory.value_or(default_memory()));
    result.schemes = scheme_records(request_.schemes);
    describe(result.run, plan);
    bring_up_to_date(request_.common);
    Database database = Database::open(request_.common.db);  // only now: bad input leaves no file behind
    announce(plan);
    for (const SiteError& row : measure(job, plan)) result.errors.push_back(error_record(row));
    if (result.errors.empty())
      fail_usage("error",
                 "the choice of sites, kinds and scopes leaves nothing (a site is "
                 "`model.layers.3.mlp.down_proj output`; weights have local errors only)");
    result.run.finished_at = now_utc();
    const std::int64_t id = database.store_run(result.run, result.schemes, result.errors);
    return {database.run(id).value(), result.schemes, database.layer_errors(id)};
  }

 private:
  void describe(RunRecord& run, const SweepPlan& plan) const {
    const bool text = request_.selection.needs_text();
    if (capture_)
      run = describe_captured_run(request_.command, request_.command_line, request_.common, *capture_, input_,
                                  "from a capture: local errors of what it holds; inherited and total errors "
                                  "and attention need the model");
    else
      run = describe_run(request_.command, request_.command_line, request_.common, request_.input,
                         *checkpoint_, input_);
    run.plan_windows = plan.windows_per_pass;
    auto notes = nlohmann::json::parse(run.notes);
    if (!text) {
      run.ctx = run.stride = 0;
      run.score = run.bos = run.protocol = "";
    }
    if (checkpoint_)
      for (const std::string& note : grid_notes(*checkpoint_)) notes.push_back(note);
    const int layers = (capture_ ? capture_->config() : checkpoint_->config()).layers;
    for (const Scheme& scheme : request_.schemes)
      for (const std::string& note : unused_notes(scheme, layers))
        notes.push_back(fmt::format("{}: {}", scheme.given(), note));
    run.notes = notes.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    std::vector<std::string> choices;
    for (const Scheme& scheme : request_.schemes) choices.push_back(scheme.spelling());
    for (std::size_t s = 0; s < kScopeNames.size(); ++s)
      if (request_.selection.scopes[s]) choices.emplace_back(kScopeNames[s]);
    for (std::size_t k = 0; k < kKindNames.size(); ++k)
      if (request_.selection.kinds[k]) choices.emplace_back(kKindNames[k]);
    choices.insert(choices.end(), request_.sites.begin(), request_.sites.end());
    run.key = run_key(run, input_, choices);
  }

  void announce(const SweepPlan& plan) const {
    if (request_.common.quiet) return;
    if (!request_.selection.needs_text()) {
      tell(fmt::format("quantmap: {} schemes, weights only\n", request_.schemes.size()));
      return;
    }
    tell(fmt::format(
        "quantmap: {} schemes{} on {} windows of {} tokens, {} passes of {} windows, {} MiB planned\n",
        request_.schemes.size(),
        request_.selection.needs_schemes() ? " and the reference" : ", local errors,", input_.windows.size(),
        input_.protocol.ctx, plan.passes, plan.windows_per_pass, plan.bytes >> 20));
  }

  std::vector<SiteError> measure(ErrorJob& job, const SweepPlan& plan) const {
    constexpr std::int64_t kSteps = 1000;
    ProgressOptions options;
    options.label = "error";
    options.unit = "parts";
    options.total = kSteps;
    options.quiet = request_.common.quiet;
    Progress progress(options);
    job.progress = [&](double done, double total) { progress.show_share(done / total); };
    job.interrupted = [] { return interrupt_seen(); };
    const InterruptGuard guard;
    return measure_errors(job, plan);
  }

  const ErrorRequest& request_;
  std::optional<Checkpoint> checkpoint_;  // this, or
  std::optional<Capture> capture_;
  TextInput input_;
};

}  // namespace

ErrorResult run_error_tables(const ErrorRequest& request) { return ErrorRun(request).run(); }

}  // namespace quantmap
