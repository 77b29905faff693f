// One evaluation from the command line's choices to stored rows: used by `eval` and `demo`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/options.hpp"
#include "evals/protocol.hpp"
#include "model/operand.hpp"
#include "scheme/scheme.hpp"
#include "store/records.hpp"

namespace quantmap {

struct EvaluationRequest {
  std::string model;
  std::string text;       // path; or
  std::string token_ids;  // path
  std::vector<Scheme> schemes;
  ProtocolOptions protocol;
  std::optional<std::int64_t> windows;
  Compute compute = Compute::bf16;
  bool noise_floor = false;
  bool resume = false;
  std::string command = "eval";
  std::string command_line;
  CommonOptions common;
};

struct EvaluationResult {
  RunRecord run;
  std::vector<EvaluationRecord> evaluations;  // the reference first; the noise floor last where asked for
};

EvaluationResult evaluate(const EvaluationRequest& request);

}  // namespace quantmap
