// The engine: all schemes walk through the model together, a set of windows at a time (a pass). Errors
// against the reference are taken after every layer, from texts alone; at the head, scores are taken tile by
// tile and no logits are kept.
//
// What a pass measures is handed to a sink in one piece, and everything that goes on from pass to pass is in
// PassResult::states, so an interrupted sweep resumes behind the last piece that was stored. No number
// depends on how windows are grouped into passes, nor on the threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "evals/protocol.hpp"
#include "evals/scores.hpp"
#include "evals/task_items.hpp"
#include "measure/error_sums.hpp"
#include "measure/site_sums.hpp"
#include "model/forward.hpp"

namespace quantmap {

struct SweepPlan {
  std::int64_t windows_per_pass = 0;  // of a text's windows
  std::int64_t tokens_per_pass = 0;   // where there are items, which differ in length; 0: windows count
  std::int64_t passes = 0;
  std::int64_t bytes = 0;        // allocated at the peak
  std::int64_t least_bytes = 0;  // with one window a pass
};
// Throws Error (usage) for a scheme that does not fit the model (model/scheme_fit.hpp).
// Texts come first, then items; a pass takes them in order, as many as fit.
std::int64_t pass_end(const std::vector<EvalWindow>& windows, std::int64_t first, const SweepPlan& plan);
std::int64_t count_passes(const std::vector<EvalWindow>& windows, std::int64_t first, const SweepPlan& plan);

// The largest passes whose allocations fit in `memory`. Throws Error (usage) naming the least possible size
// if not even one window fits. first_window: where a resumed sweep begins.
SweepPlan plan_sweep(const Checkpoint& checkpoint, const std::vector<Walker>& walkers,
                     const std::vector<EvalWindow>& windows, std::int64_t memory);
// What a sweep takes where --memory does not say: 60 % of the memory that is available now, 4 GiB at most
// (longer passes save little and lose more when interrupted).
std::int64_t default_memory();

// The largest value of the residual stream after a layer, in one window of the reference.
struct LayerPeak {
  int layer = 0;
  std::int64_t window = 0, token = 0, channel = 0;
  double value = 0;
  double median_abs = 0;  // of the window's values there; taken only where |value| > 100, else 0
};

// Errors of one walker so far, a sum a layer: what a resumed sweep continues from.
struct WalkerState {
  std::vector<ErrorSums> layers;              // residual stream after each layer
  std::int64_t saturated = 0, nonfinite = 0;  // activations and cache values
  double seconds = 0;
  std::string pack() const;
  static WalkerState unpack(std::string_view packed);
};

// What one walker makes of a task's item.
struct WindowAnswer {
  int walker = 0;
  std::int64_t window = 0;
  ItemAnswer answer;
};

struct PassResult {
  std::int64_t first_window = 0, end_window = 0;
  std::vector<WindowScores> scores;                  // [window][walker], of texts
  std::vector<WindowAnswer> answers;                 // [window][walker], of items
  std::vector<LayerPeak> peaks;                      // [window][layer], of texts
  const std::vector<WalkerState>* states = nullptr;  // after this pass, one a walker
};

struct SweepJob {
  const Checkpoint* checkpoint = nullptr;
  std::vector<Walker> walkers;  // [0]: the reference
  const std::vector<EvalWindow>* windows = nullptr;
  std::int64_t first_window = 0;    // 0, or where an interrupted sweep stopped
  std::vector<WalkerState> states;  // empty, or after window first_window - 1
  std::function<void(const PassResult&)> sink;
  std::function<void(double done, double total)>
      progress;                       // tokens times layers, the head as one more; may be empty
  std::function<bool()> interrupted;  // asked between layers; may be empty
};

// Throws Error (interrupted) if job.interrupted says so; what the sink got stays valid.
void run_sweep(const SweepJob& job, const SweepPlan& plan);

}  // namespace quantmap
