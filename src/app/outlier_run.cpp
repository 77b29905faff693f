#include "app/outlier_run.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/capture_input.hpp"
#include "app/evaluation_records.hpp"
#include "app/interrupt.hpp"
#include "app/outdated.hpp"
#include "core/error.hpp"
#include "core/progress.hpp"
#include "store/database.hpp"
#include "sweep/outliers.hpp"

namespace quantmap {
namespace {

void add_outliers(const SiteOutliers& site, std::vector<OutlierRecord>& records) {
  for (const PeakValue& peak : site.peaks) {
    // The stream's largest value in every window, as `eval` keeps it; elsewhere what is massive.
    const bool stream = site.layer >= 0 && site.site == layer_name(site.layer) + " output";
    if (!stream && !peak.massive) continue;
    OutlierRecord record;
    record.layer = site.layer;
    record.site = site.site;
    record.window = peak.window;
    record.token = peak.token;
    record.channel = peak.channel;
    record.value = peak.value;
    record.median_abs = peak.median_abs;
    if (peak.median_abs && *peak.median_abs > 0) record.ratio = std::abs(peak.value) / *peak.median_abs;
    record.massive = peak.massive;
    records.push_back(std::move(record));
  }
}

SiteStatisticsRecord statistics_record(const SiteOutliers& site) {
  SiteStatisticsRecord record;
  record.layer = site.layer;
  record.site = site.site;
  record.count = site.moments.count();
  record.nonfinite = site.nonfinite;
  if (record.count > 0) record.mean = site.moments.mean();
  record.rms = site.rms();
  record.amax = site.amax;
  record.crest = site.crest();
  record.kurtosis = site.moments.kurtosis();
  record.rows = site.rows;
  record.massive_values = site.massive_values;
  record.massive_rows = site.massive_rows;
  record.windows = site.windows;
  record.massive_windows = site.massive_windows;
  if (site.nonfinite > 0)
    record.status = fmt::format("{} values are not finite and are left out", site.nonfinite);
  else if (!record.crest)
    record.status = "undefined: every value is zero";
  else if (!record.kurtosis)
    record.status = "kurtosis undefined: every value is the same";
  return record;
}

Number over(double part, double whole) { return whole > 0 ? Number(part / whole) : Number(); }

Number relative(double error2, double reference2) {
  if (error2 == 0) return 0.0;
  return reference2 > 0 ? Number(std::sqrt(error2 / reference2)) : Number();
}

OutlierShareRecord share_record(const OutlierShare& share) {
  OutlierShareRecord record;
  record.scheme_position = share.walker;
  record.layer = share.layer;
  record.site = share.site;
  record.error2 = share.error.all;
  record.rel_error = relative(share.error.all, share.reference2);
  record.massive_values = over(share.error.massive_values, share.error.all);
  record.massive_rows = over(share.error.massive_rows, share.error.all);
  record.first_tokens = over(share.error.all - share.error_without_first.all, share.error.all);
  record.rest_error2 = share.error_without_first.all;
  record.rest_rel_error = relative(share.error_without_first.all, share.reference2_without_first);
  record.rest_massive_values = over(share.error_without_first.massive_values, share.error_without_first.all);
  record.rest_massive_rows = over(share.error_without_first.massive_rows, share.error_without_first.all);
  record.nonfinite = share.nonfinite;
  if (share.nonfinite > 0)
    record.status = fmt::format("{} values are not finite and are left out", share.nonfinite);
  else if (share.error.all == 0)
    record.status = "no error: shares of it are undefined";
  else if (share.error_without_first.all == 0)
    record.status = "no error without first tokens: shares of it are undefined";
  return record;
}

class Run {
 public:
  explicit Run(const OutlierRequest& request) : request_(request) {
    if (Capture::is_hdf5(request.input.model)) {
      capture_.emplace(Capture::open(request.input.model));
      input_ = captured_input(*capture_, true);
      if (input_.windows.empty())
        fail_input("capture", request.input.model, "it holds no activations", "windows of tokens",
                   "weights only");
    } else {
      checkpoint_.emplace(Checkpoint::open(request.input.model));
      input_ = read_text_input(request.input, *checkpoint_);
    }
  }

  OutlierRun run() {
    const Compute compute = capture_ ? capture_->info().compute : request_.input.compute;
    OutlierJob job;
    if (capture_)
      job.capture = &*capture_;
    else
      job.checkpoint = &*checkpoint_;
    job.walkers = scheme_walkers(request_.schemes, compute);
    job.windows = &input_.windows;
    const SweepPlan plan = plan_outliers(job, request_.common.memory.value_or(default_memory()));
    OutlierRun result;
    describe(result.run, plan);
    result.rows.schemes = scheme_records(request_.schemes);
    bring_up_to_date(request_.common);
    Database database = Database::open(request_.common.db);  // only now: bad input leaves no file behind
    const OutlierResult measured = measure(job, plan);
    for (const SiteOutliers& site : measured.sites) {
      add_outliers(site, result.rows.outliers);
      result.rows.statistics.push_back(statistics_record(site));
    }
    for (const OutlierShare& share : measured.shares) result.rows.shares.push_back(share_record(share));
    result.run.finished_at = now_utc();
    const std::int64_t id = database.store_run(result.run, result.rows.schemes, result.rows.outliers,
                                               result.rows.statistics, result.rows.shares);
    // What is shown is what was stored.
    return {database.run(id).value(),
            {database.schemes(id), database.outliers(id), database.site_statistics(id),
             database.outlier_shares(id)}};
  }

 private:
  void describe(RunRecord& run, const SweepPlan& plan) const {
    if (capture_)
      run = describe_captured_run("outliers", request_.command_line, request_.common, *capture_, input_,
                                  "from a capture: the sites that it holds");
    else
      run = describe_run("outliers", request_.command_line, request_.common, request_.input, *checkpoint_,
                         input_);
    run.plan_windows = plan.windows_per_pass;
    auto notes = nlohmann::json::parse(run.notes);
    if (checkpoint_)
      for (const std::string& note : grid_notes(*checkpoint_)) notes.push_back(note);
    run.notes = notes.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    std::vector<std::string> choices;
    for (const Scheme& scheme : request_.schemes) choices.push_back(scheme.spelling());
    run.key = run_key(run, input_, choices);
  }

  OutlierResult measure(OutlierJob& job, const SweepPlan& plan) const {
    ProgressOptions options;
    options.label = "outliers";
    options.unit = "tokens";
    options.total = 0;
    for (const EvalWindow& window : input_.windows)
      options.total += static_cast<std::int64_t>(window.ids.size());
    options.quiet = request_.common.quiet;
    Progress progress(options);
    job.progress = [&](double done, double total) { progress.show_share(done / total); };
    job.interrupted = [] { return interrupt_seen(); };
    const InterruptGuard guard;
    return measure_outliers(job, plan);
  }

  const OutlierRequest& request_;
  std::optional<Checkpoint> checkpoint_;  // or
  std::optional<Capture> capture_;
  TextInput input_;
};

}  // namespace

OutlierRun run_outlier_tables(const OutlierRequest& request) { return Run(request).run(); }

}  // namespace quantmap
