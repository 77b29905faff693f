// One evaluation from the command line's choices to stored rows: used by `eval` and `demo`.
#pragma once

#include <string>
#include <vector>

#include "app/task_input.hpp"
#include "app/text_input.hpp"
#include "evals/gate.hpp"
#include "scheme/scheme.hpp"
#include "store/records.hpp"

namespace quantmap {

struct EvaluationRequest {
  InputRequest input;
  TaskRequestOptions tasks;  // with tasks, a text may be left out
  std::vector<Scheme> schemes;
  bool noise_floor = false;
  bool resume = false;
  std::vector<Condition> require;  // asked of every scheme but the reference and the noise floor
  std::string command = "eval";
  std::string command_line;
  CommonOptions common;
};

struct GateRow {
  std::string scheme;
  Condition condition;
  Measured measured;
  GateVerdict verdict = GateVerdict::undecided;
};

struct EvaluationResult {
  EvaluationResults rows;
  std::vector<GateRow> gate;  // every scheme's conditions, in order
};

EvaluationResult evaluate(const EvaluationRequest& request);

}  // namespace quantmap
