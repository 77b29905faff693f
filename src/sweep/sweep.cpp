#include "sweep/sweep.hpp"

#include <algorithm>
#include <cmath>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "evals/task_window.hpp"
#include "kernels/difference/difference.hpp"

namespace quantmap {
namespace {

class Sweep {
 public:
  Sweep(const SweepJob& job, const SweepPlan& plan)
      : job_(job),
        plan_(plan),
        windows_(*job.windows),
        layers_(job.checkpoint->config().layers),
        width_(job.checkpoint->config().hidden_size),
        states_(job.states) {
    if (states_.empty()) states_.resize(job.walkers.size());
    for (WalkerState& state : states_) state.layers.resize(static_cast<std::size_t>(layers_));
  }

  void run() {
    const auto total = static_cast<std::int64_t>(windows_.size());
    PassLimits limits;
    std::int64_t end = 0;
    for (std::int64_t first = job_.first_window; first < total; first = end) {
      end = pass_end(windows_, first, plan_);
      std::int64_t tokens = 0;
      for (std::int64_t w = first; w < end; ++w) {
        tokens += length(w);
        limits.longest_window = std::max(limits.longest_window, length(w));
      }
      limits.tokens = std::max(limits.tokens, tokens);
      total_work_ += static_cast<double>(tokens) * (layers_ + 1);
    }
    if (limits.tokens == 0) return;
    Forward forward(*job_.checkpoint, job_.walkers, limits);
    for (std::int64_t first = job_.first_window; first < total; first = end) {
      end = pass_end(windows_, first, plan_);
      run_pass(forward, first, end);
    }
  }

 private:
  std::int64_t length(std::int64_t window) const {
    return static_cast<std::int64_t>(windows_[static_cast<std::size_t>(window)].ids.size());
  }

  void run_pass(Forward& forward, std::int64_t first, std::int64_t end) {
    std::vector<PassWindow> windows;
    double tokens = 0;
    texts_ = 0;
    for (std::int64_t w = first; w < end; ++w) {
      const EvalWindow& window = windows_[static_cast<std::size_t>(w)];
      windows.push_back({w, window.ids, window.prefix, window.branches});
      texts_ += window.is_item() ? 0 : 1;
      tokens += static_cast<double>(length(w));
    }
    const std::vector<double> seconds_before = forward.seconds();
    const std::vector<WalkerCounts> counts_before = forward.counts();
    PassResult result;
    result.first_window = first;
    result.end_window = end;
    peaks_.assign(static_cast<std::size_t>(texts_ * layers_), {});
    forward.start(std::move(windows));
    for (int layer = 0; layer < layers_; ++layer) {
      step(tokens);
      forward.run_layer(layer);
      measure_layer(forward, layer);
    }
    step(tokens);
    score(forward, first, result);
    for (std::size_t w = 0; w < states_.size(); ++w) {
      states_[w].seconds += forward.seconds()[w] - seconds_before[w];
      states_[w].saturated += forward.counts()[w].saturated - counts_before[w].saturated;
      states_[w].nonfinite += forward.counts()[w].nonfinite - counts_before[w].nonfinite;
    }
    result.peaks = std::move(peaks_);
    result.states = &states_;
    job_.sink(result);
    if (job_.progress && end == static_cast<std::int64_t>(windows_.size()))
      job_.progress(total_work_, total_work_);
  }

  void step(double tokens) {
    if (job_.interrupted && job_.interrupted()) throw Error(ErrorKind::interrupted, "interrupted");
    if (job_.progress) job_.progress(done_, total_work_);
    done_ += tokens;
  }

  // Errors of the residual stream against the reference, window by window in order.
  void measure_layer(const Forward& forward, int layer) {
    const std::int64_t windows = texts_;
    const auto walkers = static_cast<std::int64_t>(job_.walkers.size());
    std::vector<ErrorSums> parts(static_cast<std::size_t>(windows * walkers));
    parallel_for(windows * walkers, [&](std::int64_t task, int) {
      const auto window = static_cast<std::size_t>(task % windows);
      const auto walker = static_cast<int>(task / windows);
      const auto rows = static_cast<std::int64_t>(forward.windows()[window].ids.size());
      const float* x = forward.hidden(0, window);
      const float* y = forward.hidden(walker, window);
      ErrorSums& sums = parts[static_cast<std::size_t>(task)];
      for (std::int64_t r = 0; r < rows; ++r) {
        const RowDifference d = row_difference(x + r * width_, y + r * width_, width_);
        sums.add_row(d.error2, d.reference2, d.value2, d.dot, d.max_error, d.amax, d.nonfinite, width_);
      }
      if (walker == 0) {
        LayerPeak& peak =
            peaks_[window * static_cast<std::size_t>(layers_) + static_cast<std::size_t>(layer)];
        peak.layer = layer;
        peak.window = forward.windows()[window].index;
        const RowPeak top = row_peak(x, rows * width_);
        peak.token = top.index / width_;
        peak.channel = top.index % width_;
        peak.value = sums.nonfinite() < sums.count() ? top.value : NAN;
        // Only asked for where a value could be a massive activation.
        if (std::abs(top.value) > kMassiveValue) peak.median_abs = median_abs(x, rows * width_);
      }
    });
    for (std::int64_t walker = 0; walker < walkers; ++walker)
      for (std::int64_t window = 0; window < windows; ++window)
        states_[static_cast<std::size_t>(walker)].layers[static_cast<std::size_t>(layer)].merge(
            parts[static_cast<std::size_t>(walker * windows + window)]);
  }

  void score(Forward& forward, std::int64_t first, PassResult& result) {
    const std::size_t walkers = job_.walkers.size();
    const auto windows = static_cast<std::int64_t>(forward.windows().size());
    const std::int64_t vocab = job_.checkpoint->config().vocab_size;
    // A slot for each row, filled in any order, read in order.
    std::vector<std::vector<TokenScore>> rows(static_cast<std::size_t>(windows) * walkers);
    for (std::int64_t w = 0; w < windows; ++w)
      for (std::size_t walker = 0; walker < walkers; ++walker)
        rows[static_cast<std::size_t>(w) * walkers + walker].resize(
            static_cast<std::size_t>(length(first + w)));
    const auto rows_of = [&](std::int64_t window) {
      const EvalWindow& w = windows_[static_cast<std::size_t>(window)];
      return RowRange{w.first_row(), w.last_row()};
    };
    // One worker sees a tile's reference before its schemes.
    struct Reference {
      const float* logits = nullptr;
      std::vector<ReferenceRow> rows;
    };
    std::vector<Reference> reference(static_cast<std::size_t>(thread_count()));
    forward.run_head(rows_of, [&](const HeadTile& tile) {
      Reference& mine = reference[static_cast<std::size_t>(tile.worker)];
      if (tile.walker == 0) {
        mine.logits = tile.logits;
        mine.rows.assign(static_cast<std::size_t>(tile.rows), {});
      }
      const EvalWindow& window = windows_[static_cast<std::size_t>(tile.window)];
      auto& slots = rows[static_cast<std::size_t>(tile.window - first) * walkers +
                         static_cast<std::size_t>(tile.walker)];
      for (std::int64_t r = 0; r < tile.rows; ++r) {
        const std::int32_t target = window.targets[static_cast<std::size_t>(tile.row_begin + r)];
        if (target < 0) continue;
        float* logits = tile.logits + r * vocab;
        float* weights = tile.scratch + r * vocab;
        ReferenceRow& base = mine.rows[static_cast<std::size_t>(r)];
        TokenScore& slot = slots[static_cast<std::size_t>(tile.row_begin + r)];
        if (tile.walker == 0) {
          base = reference_row(logits, vocab, target, weights);
          slot.nll = base.nll;
          slot.greedy = base.top == target && !std::isnan(base.nll);
          if (std::isnan(base.nll)) slot.kl = slot.tv = NAN;
        } else {
          slot = compare(logits, vocab, target, base, mine.logits + r * vocab, weights);
        }
      }
    });
    for (std::int64_t w = 0; w < windows; ++w) {
      const EvalWindow& window = windows_[static_cast<std::size_t>(first + w)];
      for (std::size_t walker = 0; walker < walkers; ++walker) {
        const auto& slots = rows[static_cast<std::size_t>(w) * walkers + walker];
        if (window.is_item()) {
          result.answers.push_back({static_cast<int>(walker), first + w, item_answer(window, slots)});
          continue;
        }
        WindowScores scores;
        scores.scheme = static_cast<std::int64_t>(walker);
        scores.window = first + w;
        scores.weight = window.weight;
        scores.reserve(window.scored());
        for (std::size_t t = 0; t < window.targets.size(); ++t)
          if (window.targets[t] >= 0) scores.add(slots[t]);
        result.scores.push_back(std::move(scores));
      }
    }
  }

  const SweepJob& job_;
  const SweepPlan& plan_;
  const std::vector<EvalWindow>& windows_;
  const int layers_;
  const std::int64_t width_;
  std::vector<WalkerState> states_;
  std::vector<LayerPeak> peaks_;
  std::int64_t texts_ = 0;  // windows of the pass that are texts, which come first
  double done_ = 0, total_work_ = 0;
};

}  // namespace

std::string WalkerState::pack() const {
  std::string packed;
  put_bytes(packed, saturated);
  put_bytes(packed, nonfinite);
  put_bytes(packed, seconds);
  for (const ErrorSums& sums : layers) packed += sums.pack();
  return packed;
}

WalkerState WalkerState::unpack(std::string_view packed) {
  WalkerState state;
  std::size_t at = 0;
  const auto take = [&](auto& value) { take_bytes(packed, at, value, "stored state is cut short"); };
  take(state.saturated);
  take(state.nonfinite);
  take(state.seconds);
  while (at < packed.size()) state.layers.push_back(ErrorSums::unpack(packed, at));
  return state;
}

void run_sweep(const SweepJob& job, const SweepPlan& plan) { Sweep(job, plan).run(); }

}  // namespace quantmap
