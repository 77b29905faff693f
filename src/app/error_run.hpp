// One run of `error` from the command line's choices to stored rows.
#pragma once

#include <string>
#include <vector>

#include "app/text_input.hpp"
#include "scheme/scheme.hpp"
#include "store/records.hpp"
#include "sweep/error_tables.hpp"

namespace quantmap {

struct ErrorRequest {
  InputRequest input;  // the model, or a capture of it, which brings its own text and compute
  std::vector<Scheme> schemes;
  ErrorSelection selection;
  std::vector<std::string> sites;  // patterns, as given: part of the run's identity
  std::string command = "error";
  std::string command_line;
  CommonOptions common;
};

struct ErrorResult {
  RunRecord run;
  std::vector<SchemeRecord> schemes;  // the reference first
  std::vector<LayerErrorRecord> errors;
};

ErrorResult run_error_tables(const ErrorRequest& request);

}  // namespace quantmap
