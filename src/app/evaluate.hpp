// One evaluation from the command line's choices to stored rows: used by `eval` and `demo`.
#pragma once

#include <string>
#include <vector>

#include "app/task_input.hpp"
#include "app/text_input.hpp"
#include "scheme/scheme.hpp"
#include "store/records.hpp"

namespace quantmap {

struct EvaluationRequest {
  InputRequest input;
  TaskRequestOptions tasks;  // with tasks, a text may be left out
  std::vector<Scheme> schemes;
  bool noise_floor = false;
  bool resume = false;
  std::string command = "eval";
  std::string command_line;
  CommonOptions common;
};

struct EvaluationResult {
  RunRecord run;
  std::vector<EvaluationRecord> evaluations;  // the reference first; the noise floor last where asked for
  std::vector<TaskScoreRecord> tasks;
};

EvaluationResult evaluate(const EvaluationRequest& request);

}  // namespace quantmap
