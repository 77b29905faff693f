#include "app/evaluate.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <iterator>
#include <limits>

#include "app/evaluation_records.hpp"
#include "app/interrupt.hpp"
#include "app/outdated.hpp"
#include "core/error.hpp"
#include "core/progress.hpp"
#include "reports/evaluation.hpp"
#include "store/database.hpp"
#include "sweep/sweep.hpp"

namespace quantmap {
namespace {

std::vector<SchemeRecord> scheme_records(const EvaluationRequest& request, const char* floor_compute) {
  std::vector<SchemeRecord> records = scheme_records(request.schemes);
  if (request.noise_floor) {
    SchemeRecord floor = records[0];
    floor.position = static_cast<std::int64_t>(records.size());
    floor.scheme = kNoiseFloor;
    floor.spec += fmt::format(", compute {}", floor_compute);
    records.push_back(floor);
  }
  return records;
}

std::vector<Walker> walkers_of(const EvaluationRequest& request) {
  std::vector<Walker> walkers = scheme_walkers(request.schemes, request.input.compute);
  if (request.noise_floor)
    walkers.push_back({std::nullopt, request.input.compute == Compute::f32 ? Compute::bf16 : Compute::f32});
  return walkers;
}

class Evaluation {
 public:
  explicit Evaluation(const EvaluationRequest& request)
      : request_(request), checkpoint_(Checkpoint::open(request.input.model)) {}

  EvaluationResult run() {
    prepare();
    walkers_ = walkers_of(request_);
    SweepPlan plan =
        plan_sweep(checkpoint_, walkers_, windows_, request_.common.memory.value_or(default_memory()));
    bring_up_to_date(request_.common);
    database_.emplace(Database::open(request_.common.db));  // only now: bad input leaves no file behind
    if (request_.resume) {
      if (const auto earlier = database_->find_run(run_.key)) {
        run_ = *earlier;
        if (run_.status == "complete") {
          say(fmt::format("run {} is complete in {}", run_.id, request_.common.db));
          return stored_result();
        }
        load_state();
      }
    }
    if (run_.id == 0) {
      run_.plan_windows = plan.windows_per_pass;
      run_.id = database_->start_run(run_, schemes_);
    } else if (run_.plan_windows < plan.windows_per_pass) {
      plan.windows_per_pass = run_.plan_windows;  // pass boundaries come from the stored plan
    }
    plan.passes = count_passes(windows_, first_window_, plan);
    announce(plan);
    sweep(plan);
    return finish();
  }

 private:
  void say(const std::string& message) const {
    if (!request_.common.quiet) tell("quantmap: " + message + "\n");
  }

  void prepare() {
    const bool has_text = !request_.input.text.empty() || !request_.input.token_ids.empty();
    if (has_text)
      input_ = read_text_input(request_.input, checkpoint_);
    else
      input_.protocol = resolve_protocol(request_.input.protocol, std::numeric_limits<std::int64_t>::max());
    windows_ = input_.windows;
    if (!request_.tasks.tasks.empty()) {
      tasks_ = read_task_input(request_.tasks, request_.input.model, checkpoint_, input_.protocol.bos);
      std::vector<EvalWindow> items = task_windows(tasks_);
      windows_.insert(windows_.end(), std::make_move_iterator(items.begin()),
                      std::make_move_iterator(items.end()));
      input_.tokenizer_sha256 = tasks_.tokenizer_sha256;
    }
    const bool f32 = request_.input.compute == Compute::f32;
    schemes_ = scheme_records(request_, compute_name(f32 ? Compute::bf16 : Compute::f32));
    run_ = describe_run(request_.command, request_.command_line, request_.common, request_.input, checkpoint_,
                        input_);
    std::vector<std::string> choices;
    for (const Scheme& scheme : request_.schemes) choices.push_back(scheme.spelling());
    choices.emplace_back(request_.noise_floor ? "noise floor" : "");
    choices.push_back(tasks_.sha256);
    run_.key = run_key(run_, input_, choices);
  }

  void load_state() {
    first_window_ = stored();
    if (first_window_ == 0) return;
    for (const StateRecord& record : database_->states(run_.id))
      states_.push_back(WalkerState::unpack(record.state));
    if (states_.size() != schemes_.size())
      fail("database", request_.common.db,
           fmt::format("run {} holds the state of {} schemes, not {}", run_.id, states_.size(),
                       schemes_.size()));
    say(fmt::format("run {} resumes at window {} of {}{}", run_.id, first_window_, windows_.size(),
                    tasks_.tasks.empty() ? "" : ", items of tasks counted"));
  }

  // Windows and items that are stored for every scheme.
  std::int64_t stored() const {
    return database_->stored_windows(run_.id) + database_->stored_items(run_.id);
  }
  std::int64_t items() const { return static_cast<std::int64_t>(windows_.size()) - run_.windows; }

  void announce(const SweepPlan& plan) const {
    const auto counted = [](std::int64_t count, const char* noun, const char* plural = "s") {
      return fmt::format("{} {}{}", count, noun, count == 1 ? "" : plural);
    };
    std::vector<std::string> on;
    if (run_.windows > 0)
      on.push_back(fmt::format("{} of {} tokens", counted(run_.windows, "window"), run_.ctx));
    if (items() > 0) on.push_back(counted(items(), "item") + " of tasks");
    const char* unit = items() == 0 ? "window" : run_.windows == 0 ? "item" : "window";
    say(fmt::format("run {}: {} and the reference on {}, {} of at most {}{}, {} MiB planned ({})", run_.id,
                    counted(static_cast<std::int64_t>(walkers_.size()) - 1, "scheme"), fmt::join(on, " and "),
                    counted(plan.passes, "pass", "es"), counted(plan.windows_per_pass, unit),
                    on.size() > 1 ? " and items" : "", plan.bytes >> 20, counted(run_.threads, "thread")));
  }

  void sweep(const SweepPlan& plan) {
    SweepJob job;
    job.checkpoint = &checkpoint_;
    job.walkers = walkers_;
    job.windows = &windows_;
    job.first_window = first_window_;
    job.states = states_;
    job.sink = [&](const PassResult& pass) { store(pass); };
    job.interrupted = [] { return interrupt_seen(); };
    std::int64_t tokens_left = 0;
    for (std::size_t w = static_cast<std::size_t>(first_window_); w < windows_.size(); ++w)
      tokens_left += static_cast<std::int64_t>(windows_[w].ids.size());
    const auto walkers = static_cast<double>(walkers_.size());
    ProgressOptions options;
    options.label = "eval";
    options.unit = "tokens";
    options.total = static_cast<std::int64_t>(static_cast<double>(tokens_left) * walkers);
    options.quiet = request_.common.quiet;
    Progress progress(options);
    job.progress = [&](double done, double total) { progress.show_share(total > 0 ? done / total : 0); };
    const InterruptGuard guard;
    try {
      run_sweep(job, plan);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::interrupted) throw;
      throw Error(ErrorKind::interrupted,
                  fmt::format("interrupted: {}: {} of {} windows of run {} are stored, --resume goes on",
                              request_.common.db, stored(), windows_.size(), run_.id));
    }
  }

  void store(const PassResult& pass) {
    std::vector<WindowRecord> windows;
    for (const WindowScores& scores : pass.scores)
      windows.push_back({scores.scheme, scores.window, scores.pack_tokens(), scores.pack_sums()});
    std::vector<StateRecord> states;
    for (std::size_t w = 0; w < pass.states->size(); ++w)
      states.push_back({static_cast<std::int64_t>(w), (*pass.states)[w].pack()});
    std::vector<TaskItemRecord> items;
    for (const WindowAnswer& one : pass.answers)
      add_item_records(item_place(tasks_, one.window - run_.windows), one.walker, one.answer, items);
    database_->store_pass(run_.id, windows, states, outlier_records(pass.peaks), items);
    // A terminal has the bar; a log gets a line a pass.
    const auto total = static_cast<std::int64_t>(windows_.size());
    if (pass.end_window < total && !::isatty(STDERR_FILENO))
      say(fmt::format("{} of {} windows stored", pass.end_window, total));
  }

  std::vector<WindowScores> scores_of(std::int64_t position) const {
    std::vector<WindowScores> scores;
    for (const WindowRecord& record : database_->windows(run_.id, position))
      scores.push_back(WindowScores::unpack(position, record.window, record.tokens, record.sums));
    return scores;
  }

  EvaluationResult finish() {
    const std::vector<WindowScores> reference = scores_of(0);
    const std::vector<std::string> grid = grid_notes(checkpoint_);
    std::vector<WalkerState> states;
    for (const StateRecord& record : database_->states(run_.id))
      states.push_back(WalkerState::unpack(record.state));
    std::vector<EvaluationRecord> evaluations;
    std::vector<LayerErrorRecord> errors;
    std::vector<SchemeWindows> sums;
    std::vector<std::vector<WindowScores>> of_scheme_scores;  // where tokens have labels
    for (std::size_t w = 0; w < walkers_.size(); ++w) {
      const auto position = static_cast<std::int64_t>(w);
      const std::vector<WindowScores> scores = w == 0 ? reference : scores_of(position);
      const ScoreSummary summary = summarize(scores, reference);
      const Scheme* scheme = walkers_[w].scheme ? &*walkers_[w].scheme : nullptr;
      evaluations.push_back(evaluation_record(schemes_[w], summary, scheme, states[w], checkpoint_.config()));
      auto& notes = evaluations.back().notes;
      notes.insert(notes.begin(), grid.begin(), grid.end());
      if (run_.windows == 0) continue;  // no text: no errors of layers, nothing to compare
      sums.push_back(scheme_windows(position, scores));
      if (!input_.segments.names.empty()) of_scheme_scores.push_back(scores);
      const auto layers = layer_records(position, states[w]);
      errors.insert(errors.end(), layers.begin(), layers.end());
    }
    if (!tasks_.tasks.empty()) {
      std::vector<std::vector<TaskItemRecord>> of_scheme;
      for (const SchemeRecord& scheme : schemes_)
        of_scheme.push_back(database_->task_items(run_.id, scheme.position));
      database_->store_task_scores(run_.id, task_score_records(tasks_, schemes_, of_scheme));
    }
    run_.finished_at = now_utc();
    const auto seed = static_cast<std::uint64_t>(request_.common.seed);
    database_->finish_run(run_.id, run_.finished_at, evaluations, errors,
                          comparison_records(schemes_, compare_schemes(sums, seed)),
                          segment_records(schemes_, of_scheme_scores, input_.segments));
    run_ = database_->run(run_.id).value();
    return stored_result();
  }

  // What is shown is what was stored, so that a resumed run prints what an unbroken one does.
  EvaluationResult stored_result() const {
    EvaluationResult result{{run_, database_->evaluations(run_.id), database_->task_scores(run_.id),
                             database_->comparisons(run_.id), database_->segments(run_.id)},
                            {}};
    if (request_.require.empty()) return result;
    const std::vector<WindowScores> reference = scores_of(0);
    for (const EvaluationRecord& evaluation : result.rows.evaluations) {
      if (evaluation.scheme.position == 0 || evaluation.scheme.scheme == kNoiseFloor) continue;
      const std::vector<WindowScores> scores = scores_of(evaluation.scheme.position);
      for (const Condition& condition : request_.require) {
        const Measured m = measured(condition.metric, scores, reference,
                                    [&](std::string_view name) { return gate_column(evaluation, name); });
        result.gate.push_back({evaluation.scheme.scheme, condition, m, judge(condition, m)});
      }
    }
    return result;
  }

  const EvaluationRequest& request_;
  Checkpoint checkpoint_;
  std::optional<Database> database_;
  TextInput input_;
  TaskInput tasks_;
  std::vector<EvalWindow> windows_;  // of the text, then one an item
  RunRecord run_;
  std::vector<SchemeRecord> schemes_;
  std::vector<Walker> walkers_;
  std::vector<WalkerState> states_;
  std::int64_t first_window_ = 0;
};

}  // namespace

EvaluationResult evaluate(const EvaluationRequest& request) { return Evaluation(request).run(); }

}  // namespace quantmap
