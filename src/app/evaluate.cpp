#include "app/evaluate.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <ctime>
#include <nlohmann/json.hpp>

#include "app/machine.hpp"
#include "app/version.hpp"
#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "core/mapped_file.hpp"
#include "core/parallel.hpp"
#include "core/progress.hpp"
#include "kernels/matmul/matmul.hpp"
#include "model/coarse_grid.hpp"
#include "model/sizes.hpp"
#include "reports/evaluation.hpp"
#include "store/database.hpp"
#include "sweep/sweep.hpp"
#include "tokenizer/tokenizer.hpp"
#include "tokenizer/unicode.hpp"

namespace quantmap {
namespace {

volatile std::sig_atomic_t interrupt_seen = 0;

// Ctrl-C ends a sweep after the layer under way; a second one at once.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupt_seen = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupt_seen = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &old_int_);
    sigaction(SIGTERM, &action, &old_term_);
    // Whoever starts a program with a signal ignored (nohup, `&`) means it.
    if (old_int_.sa_handler == SIG_IGN) sigaction(SIGINT, &old_int_, nullptr);
    if (old_term_.sa_handler == SIG_IGN) sigaction(SIGTERM, &old_term_, nullptr);
  }
  ~InterruptGuard() {
    sigaction(SIGINT, &old_int_, nullptr);
    sigaction(SIGTERM, &old_term_, nullptr);
  }

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

std::string now_utc() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

// What is evaluated, read and cut.
struct Input {
  Protocol protocol;
  std::vector<EvalWindow> windows;
  std::string text_sha256, tokenizer_sha256, ids_sha256, name;
  std::vector<std::int32_t> first_ids;
  std::int64_t text_tokens = 0, dropped_tokens = 0;
  bool bos_added = false;
};

constexpr std::size_t kFirstIds = 16;

Input read_input(const EvaluationRequest& request, const Checkpoint& checkpoint) {
  Input input;
  const ModelConfig& config = checkpoint.config();
  const std::int64_t limit = config.max_position > 0 ? config.max_position : std::int64_t{1} << 30;
  if (!request.token_ids.empty()) {
    auto ids = read_token_ids(request.token_ids, config.vocab_size);
    ProtocolOptions options = request.protocol;
    const auto length = static_cast<std::int64_t>(ids[0].size());
    if (options.ctx && *options.ctx != length)
      fail_input("token ids", request.token_ids, "windows of another length than --ctx",
                 std::to_string(*options.ctx), std::to_string(length));
    if (!options.protocol.empty() && options.protocol != "llama.cpp" && options.protocol != "gptq")
      fail_usage("--token-ids", "windows given as ids are disjoint: --protocol " + options.protocol +
                                    " would cut the text itself");
    options.ctx = length;
    input.protocol = resolve_protocol(options, limit);
    std::vector<std::int32_t> all;
    for (const auto& window : ids) all.insert(all.end(), window.begin(), window.end());
    input.name = request.token_ids;
    input.text_sha256 = sha256(MappedFile(request.token_ids).text());
    input.ids_sha256 = sha256_of_ids(all);
    input.text_tokens = static_cast<std::int64_t>(all.size());
    input.windows = windows_of_ids(std::move(ids), input.protocol);
    input.first_ids.assign(all.begin(),
                           all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kFirstIds)));
  } else {
    input.protocol = resolve_protocol(request.protocol, limit);
    const MappedFile text(request.text);
    const auto tokenizer = load_tokenizer(request.model);
    require_utf8(text.text(), request.text);
    const std::vector<std::int32_t> ids = tokenizer->encode(text.text());
    for (const std::int32_t id : ids)
      if (id >= config.vocab_size)
        fail_input("tokenizer", request.model, "it gives ids that the model does not have",
                   fmt::format("ids below {}", config.vocab_size), std::to_string(id));
    input.name = request.text;
    input.text_sha256 = sha256(text.text());
    input.tokenizer_sha256 = tokenizer->fingerprint();
    input.ids_sha256 = sha256_of_ids(ids);
    input.text_tokens = static_cast<std::int64_t>(ids.size());
    CutText cut =
        cut_text(ids, input.protocol, tokenizer->add_bos(), tokenizer->bos(), tokenizer->eos(), request.text);
    input.windows = std::move(cut.windows);
    input.dropped_tokens = cut.dropped_tokens;
    input.bos_added = cut.bos_added;
    const auto& first = input.windows[0].ids;
    input.first_ids.assign(first.begin(),
                           first.begin() + static_cast<std::ptrdiff_t>(std::min(first.size(), kFirstIds)));
  }
  if (request.windows) {
    if (*request.windows < 1) fail_usage("--windows", "1 or more");
    const auto wanted = static_cast<std::size_t>(*request.windows);
    if (wanted > input.windows.size())
      fail_input("text is too short", input.name, "fewer windows than --windows asks for",
                 std::to_string(wanted), std::to_string(input.windows.size()));
    input.windows.resize(wanted);
  }
  return input;
}

// The identity of a run: everything that its numbers depend on.
std::string run_key(const EvaluationRequest& request, const RunRecord& run, const Input& input) {
  Fingerprint key;
  const auto add = [&](std::string_view part) {
    key.add(part);
    key.add("\n");
  };
  for (const std::string* part : {&run.command, &run.model_sha256, &run.tokenizer_sha256, &run.text_sha256,
                                  &run.token_ids_sha256, &run.protocol, &run.score, &run.bos, &run.compute})
    add(*part);
  for (const EvalWindow& window : input.windows) {
    add(sha256_of_ids(window.ids));
    add(sha256_of_ids(window.targets));
    add(fmt::format("{}", window.weight));
  }
  for (const Scheme& scheme : request.schemes) add(scheme.spelling());
  add(request.noise_floor ? "noise floor" : "");
  // Another program or arithmetic must not finish what this one began.
  add(fmt::format("{} {} {} {}", run.version, run.git_revision, run.device, has_bf16_products()));
  return key.hex();
}

std::vector<SchemeRecord> scheme_records(const EvaluationRequest& request, const char* floor_compute) {
  std::vector<SchemeRecord> records;
  const Scheme reference = Scheme::parse("BF16");
  const auto add = [&](const std::string& name, const Scheme& scheme, const std::string& spelling) {
    records.push_back({static_cast<std::int64_t>(records.size()), name, spelling, scheme.weights(),
                       scheme.activations(), scheme.kv()});
  };
  add("BF16", reference, reference.spelling());
  for (const Scheme& scheme : request.schemes) add(scheme.given(), scheme, scheme.spelling());
  if (request.noise_floor)
    add(kNoiseFloor, reference, fmt::format("{}, compute {}", reference.spelling(), floor_compute));
  return records;
}

std::vector<Walker> walkers_of(const EvaluationRequest& request) {
  std::vector<Walker> walkers(1);
  walkers[0].compute = request.compute;
  for (const Scheme& scheme : request.schemes) walkers.push_back({scheme, request.compute});
  if (request.noise_floor)
    walkers.push_back({std::nullopt, request.compute == Compute::f32 ? Compute::bf16 : Compute::f32});
  return walkers;
}

std::vector<OutlierRecord> outlier_records(const std::vector<LayerPeak>& peaks) {
  std::vector<OutlierRecord> records;
  for (const LayerPeak& peak : peaks) {
    OutlierRecord record;
    record.layer = peak.layer;
    record.site = layer_name(peak.layer) + " output";
    record.window = peak.window;
    record.token = peak.token;
    record.channel = peak.channel;
    record.value = peak.value;
    if (peak.median_abs > 0) {
      record.median_abs = peak.median_abs;
      record.ratio = std::abs(peak.value) / peak.median_abs;
      record.massive = std::abs(peak.value) > kMassiveValue && *record.ratio >= kMassiveRatio;
    }
    records.push_back(record);
  }
  return records;
}

std::vector<LayerErrorRecord> layer_records(std::int64_t position, const WalkerState& state) {
  std::vector<LayerErrorRecord> records;
  for (std::size_t layer = 0; layer < state.layers.size(); ++layer) {
    const ErrorSums& sums = state.layers[layer];
    LayerErrorRecord record;
    record.scheme_position = position;
    record.layer = static_cast<std::int64_t>(layer);
    record.site = layer_name(static_cast<int>(layer)) + " output";
    record.scope = "total";
    record.kind = "activation";
    record.rel_error = sums.relative_error();
    record.rel_error_residual = record.rel_error;  // the site is the residual stream itself
    record.sqnr_db = sums.sqnr_db();
    record.cosine = sums.cosine();
    record.max_abs_error = sums.max_error();
    record.amax = sums.amax();
    record.nonfinite = sums.nonfinite();
    record.count = sums.count();
    record.row_error_p50 = sums.rows().quantile(0.5);
    record.row_error_p90 = sums.rows().quantile(0.9);
    if (sums.nonfinite() > 0)
      record.status =
          fmt::format("{} of {} values are not finite and are left out", sums.nonfinite(), sums.count());
    else if (!record.rel_error)
      record.status = "undefined: the reference is all zero";
    records.push_back(std::move(record));
  }
  return records;
}

bool spans_window(const QuantSpec& spec) {
  return spec.needs_tensor_range() || spec.granularity == Granularity::column;
}

std::vector<std::string> scheme_notes(const Scheme& scheme, int layers, const WalkerState& state) {
  std::vector<std::string> notes;
  bool activation = false, cache = false;
  std::vector<std::string> modules = {kHead};
  for (int layer = 0; layer < layers; ++layer) {
    for (const LinearId id : kLayerLinears) modules.push_back(linear_name(layer, id));
    const KvChoice kv = scheme.cache(layer);
    cache = cache || spans_window(kv.key) || spans_window(kv.value);
    for (const LinearId id : kLayerLinears)
      activation = activation || spans_window(scheme.linear(linear_name(layer, id)).activation);
  }
  if (activation || cache)
    notes.push_back(fmt::format("{} scales span one window: they see later tokens, which serving does not",
                                activation && cache ? "activation and cache"
                                : activation        ? "activation"
                                                    : "cache"));
  for (const std::string& pattern : scheme.unused_patterns(modules))
    notes.push_back(pattern + " matches no module of this model");
  if (state.saturated > 0)
    notes.push_back(fmt::format("{} activation or cache values saturated", state.saturated));
  if (state.nonfinite > 0)
    notes.push_back(fmt::format("{} activation or cache values were not finite", state.nonfinite));
  return notes;
}

std::vector<std::string> grid_notes(const Checkpoint& checkpoint) {
  const auto grid = find_coarse_grid(checkpoint);
  if (!grid) return {};
  return {
      fmt::format("this checkpoint was quantized before: {:.1f} % of {} blocks of {} weights hold at most {} "
                  "values, a {}-bit grid; {}-bit numbers are flattered, and all are relative to this "
                  "checkpoint, not to what "
                  "it was made from",
                  100 * grid->share, grid->blocks, grid->block, 1 << grid->bits, grid->bits, grid->bits)};
}

class Evaluation {
 public:
  explicit Evaluation(const EvaluationRequest& request)
      : request_(request), checkpoint_(Checkpoint::open(request.model)) {}

  EvaluationResult run() {
    prepare();
    walkers_ = walkers_of(request_);
    SweepPlan plan =
        plan_sweep(checkpoint_, walkers_, input_.windows, request_.common.memory.value_or(default_memory()));
    database_.emplace(Database::open(request_.common.db));  // only now: bad input leaves no file behind
    if (request_.resume) {
      if (const auto earlier = database_->find_run(run_.key)) {
        run_ = *earlier;
        if (run_.status == "complete") {
          say(fmt::format("run {} is complete in {}", run_.id, request_.common.db));
          return {run_, database_->evaluations(run_.id)};
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
    const std::int64_t left = run_.windows - first_window_;
    plan.passes = (left + plan.windows_per_pass - 1) / plan.windows_per_pass;
    announce(plan);
    sweep(plan);
    return finish();
  }

 private:
  void say(const std::string& message) const {
    if (!request_.common.quiet) tell("quantmap: " + message + "\n");
  }

  void prepare() {
    input_ = read_input(request_, checkpoint_);
    const bool f32 = request_.compute == Compute::f32;
    schemes_ = scheme_records(request_, compute_name(f32 ? Compute::bf16 : Compute::f32));
    run_.command = request_.command;
    run_.command_line = request_.command_line;
    run_.version = kVersion;
    run_.git_revision = kGitRevision;
    run_.machine = machine();
    run_.device = "cpu";
    run_.threads = thread_count();
    run_.seed = request_.common.seed;
    run_.started_at = now_utc();
    run_.model = request_.model;
    run_.model_type = checkpoint_.config().model_type;
    run_.model_sha256 = checkpoint_.fingerprint();
    run_.tokenizer_sha256 = input_.tokenizer_sha256;
    run_.text_sha256 = input_.text_sha256;
    run_.token_ids_sha256 = input_.ids_sha256;
    run_.text = input_.name;
    run_.protocol = input_.protocol.name;
    run_.ctx = input_.protocol.ctx;
    run_.stride = input_.protocol.stride;
    run_.windows = static_cast<std::int64_t>(input_.windows.size());
    run_.score = score_name(input_.protocol.score);
    run_.bos = bos_name(input_.protocol.bos);
    run_.compute = compute_name(request_.compute);
    run_.first_ids = nlohmann::json(input_.first_ids).dump();
    run_.text_tokens = input_.text_tokens;
    run_.dropped_tokens = input_.dropped_tokens;
    std::vector<std::string> notes(checkpoint_.warnings().begin(), checkpoint_.warnings().end());
    if (!has_bf16_products() && !f32)
      notes.emplace_back("this processor has no BF16 products: BF16 operands are multiplied in FP32");
    const std::int64_t limit = checkpoint_.config().max_position;
    if (limit > 0 && run_.ctx > limit)
      notes.push_back(fmt::format(
          "windows of {} tokens are longer than the {} positions the model was made for", run_.ctx, limit));
    run_.notes = nlohmann::json(notes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    run_.key = run_key(request_, run_, input_);
  }

  void load_state() {
    first_window_ = database_->stored_windows(run_.id);
    if (first_window_ == 0) return;
    for (const StateRecord& record : database_->states(run_.id))
      states_.push_back(WalkerState::unpack(record.state));
    if (states_.size() != schemes_.size())
      fail("database", request_.common.db,
           fmt::format("run {} holds the state of {} schemes, not {}", run_.id, states_.size(),
                       schemes_.size()));
    say(fmt::format("run {} resumes at window {} of {}", run_.id, first_window_, run_.windows));
  }

  void announce(const SweepPlan& plan) const {
    const auto counted = [](std::int64_t count, const char* noun, const char* plural = "s") {
      return fmt::format("{} {}{}", count, noun, count == 1 ? "" : plural);
    };
    say(fmt::format("run {}: {} and the reference on {} of {} tokens, {} of {}, {} MiB planned ({})", run_.id,
                    counted(static_cast<std::int64_t>(walkers_.size()) - 1, "scheme"),
                    counted(run_.windows, "window"), run_.ctx, counted(plan.passes, "pass", "es"),
                    counted(plan.windows_per_pass, "window"), plan.bytes >> 20,
                    counted(run_.threads, "thread")));
  }

  void sweep(const SweepPlan& plan) {
    SweepJob job;
    job.checkpoint = &checkpoint_;
    job.walkers = walkers_;
    job.windows = &input_.windows;
    job.first_window = first_window_;
    job.states = states_;
    job.sink = [&](const PassResult& pass) { store(pass); };
    job.interrupted = [] { return interrupt_seen != 0; };
    std::int64_t tokens_left = 0;
    for (std::size_t w = static_cast<std::size_t>(first_window_); w < input_.windows.size(); ++w)
      tokens_left += static_cast<std::int64_t>(input_.windows[w].ids.size());
    const auto walkers = static_cast<double>(walkers_.size());
    ProgressOptions options;
    options.label = "eval";
    options.unit = "tokens";
    options.total = static_cast<std::int64_t>(static_cast<double>(tokens_left) * walkers);
    options.quiet = request_.common.quiet;
    Progress progress(options);
    double shown = 0;
    job.progress = [&](double done, double total) {
      const double now = total > 0 ? static_cast<double>(options.total) * done / total : 0;
      progress.advance(static_cast<std::int64_t>(now) - static_cast<std::int64_t>(shown));
      shown = now;
    };
    const InterruptGuard guard;
    try {
      run_sweep(job, plan);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::interrupted) throw;
      throw Error(ErrorKind::interrupted,
                  fmt::format("interrupted: {}: {} of {} windows of run {} are stored, --resume goes on",
                              request_.common.db, database_->stored_windows(run_.id), run_.windows, run_.id));
    }
  }

  void store(const PassResult& pass) {
    std::vector<WindowRecord> windows;
    for (const WindowScores& scores : pass.scores)
      windows.push_back({scores.scheme, scores.window, scores.pack_tokens(), scores.pack_sums()});
    std::vector<StateRecord> states;
    for (std::size_t w = 0; w < pass.states->size(); ++w)
      states.push_back({static_cast<std::int64_t>(w), (*pass.states)[w].pack()});
    database_->store_pass(run_.id, windows, states, outlier_records(pass.peaks));
    // A terminal has the bar; a log gets a line a pass.
    if (pass.end_window < run_.windows && !::isatty(STDERR_FILENO))
      say(fmt::format("{} of {} windows stored", pass.end_window, run_.windows));
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
    for (std::size_t w = 0; w < walkers_.size(); ++w) {
      const auto position = static_cast<std::int64_t>(w);
      const ScoreSummary summary =
          w == 0 ? summarize(reference, reference) : summarize(scores_of(position), reference);
      const Scheme* scheme = walkers_[w].scheme ? &*walkers_[w].scheme : nullptr;
      evaluations.push_back(record_of(schemes_[w], summary, scheme, states[w]));
      auto& notes = evaluations.back().notes;
      notes.insert(notes.begin(), grid.begin(), grid.end());
      const auto layers = layer_records(position, states[w]);
      errors.insert(errors.end(), layers.begin(), layers.end());
    }
    run_.finished_at = now_utc();
    database_->finish_run(run_.id, run_.finished_at, evaluations, errors);
    // What is shown is what was stored, so that a resumed run prints what an unbroken one does.
    return {database_->run(run_.id).value(), database_->evaluations(run_.id)};
  }

  EvaluationRecord record_of(const SchemeRecord& scheme, const ScoreSummary& s, const Scheme* rules,
                             const WalkerState& state) const {
    EvaluationRecord e;
    e.scheme = scheme;
    e.ppl = s.ppl;
    e.ppl_stderr = s.ppl_stderr;
    e.nll = s.nll;
    e.nll_stderr = s.nll_stderr;
    e.ln_ppl_ratio = s.ln_ppl_ratio;
    e.ln_ppl_ratio_stderr = s.ln_ppl_ratio_stderr;
    e.kl_mean = s.kl_mean;
    e.kl_stderr = s.kl_stderr;
    e.kl_p50 = s.kl_p50;
    e.kl_p90 = s.kl_p90;
    e.kl_p99 = s.kl_p99;
    e.kl_p999 = s.kl_p999;
    e.kl_max = s.kl_max;
    e.kl_infinite = s.kl_infinite;
    e.tv_mean = s.tv_mean;
    e.top1_agreement = s.top1_agreement;
    e.top1_stderr = s.top1_stderr;
    e.margin_flips = s.margin_flips;
    e.delta_p_mean = s.delta_p_mean;
    e.delta_p_rms = s.delta_p_rms;
    e.ppl_stderr_iid = s.ppl_stderr_iid;
    e.kl_stderr_iid = s.kl_stderr_iid;
    e.tokens_scored = s.tokens;
    e.windows = s.windows;
    e.status = s.status;
    e.notes = s.notes;
    const SchemeSize size = scheme_size(checkpoint_.config(), rules);
    if (size.quantized_values > 0) e.bpw_quantized = size.bpw_quantized;
    e.bpw_model = size.bpw_model;
    e.weight_bytes = size.weight_bytes;
    e.kv_bytes_per_token = size.kv_bytes_per_token;
    e.seconds = state.seconds;
    if (rules) {
      const auto more = scheme_notes(*rules, checkpoint_.config().layers, state);
      e.notes.insert(e.notes.end(), more.begin(), more.end());
    }
    return e;
  }

  const EvaluationRequest& request_;
  Checkpoint checkpoint_;
  std::optional<Database> database_;
  Input input_;
  RunRecord run_;
  std::vector<SchemeRecord> schemes_;
  std::vector<Walker> walkers_;
  std::vector<WalkerState> states_;
  std::int64_t first_window_ = 0;
};

}  // namespace

EvaluationResult evaluate(const EvaluationRequest& request) { return Evaluation(request).run(); }

}  // namespace quantmap
