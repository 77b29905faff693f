// Pieces that the parts of Forward share. Not for other stages.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "model/arena.hpp"
#include "model/forward.hpp"

namespace quantmap {

// A task of a pass: some tokens of one window of one walker.
struct Forward::Tile {
  int walker = 0;
  std::size_t window = 0;  // in the pass
  std::int64_t row_begin = 0, rows = 0;
};

// A step of a layer: Linears that share an input.
struct Forward::Step {
  std::string norm;  // name of the norm that makes the input from the residual stream; empty: inner values
  std::int64_t in = 0;
  enum Output { qkv, residual, inner } output = qkv;  // what becomes of their outputs
};

// Splits the wall time of a step over the walkers that worked in it.
class Forward::Timer {
 public:
  Timer(Forward& forward, std::vector<int> walkers);
  ~Timer();
  // Measures a task on behalf of a walker.
  class Task {
   public:
    Task(Timer& timer, int worker, int walker);
    ~Task();

   private:
    double& busy_;
    std::chrono::steady_clock::time_point begin_;
  };

 private:
  Forward& forward_;
  std::vector<int> walkers_;
  std::chrono::steady_clock::time_point begin_;
  std::vector<std::vector<double>> busy_;  // [worker][walker]
};

// Values a token takes in Forward::inner_: q, k and v, then the MLP's inner values.
std::int64_t inner_width(const ModelConfig& config);

// Scratch that the steps of a layer and the head take on one worker.
std::int64_t layer_scratch_bytes(const ModelConfig& config, std::int64_t longest_window);
std::int64_t head_scratch_bytes(const ModelConfig& config);

}  // namespace quantmap
