// One run of `outliers` from the command line's choices to stored rows.
#pragma once

#include <string>
#include <vector>

#include "app/text_input.hpp"
#include "reports/outliers.hpp"
#include "scheme/scheme.hpp"

namespace quantmap {

struct OutlierRequest {
  InputRequest input;           // the model, or a capture of it, which brings its own text and compute
  std::vector<Scheme> schemes;  // whose formats' errors are looked at; may be empty
  std::string command_line;
  CommonOptions common;
};

struct OutlierRun {
  RunRecord run;
  OutlierRows rows;
};

OutlierRun run_outlier_tables(const OutlierRequest& request);

}  // namespace quantmap
