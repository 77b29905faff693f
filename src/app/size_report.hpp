// What `size` prints: a table of rows, the parts of the first, bars of weights against cache; every figure
// for programs.
#pragma once

#include <string>
#include <vector>

#include "core/table.hpp"
#include "map/sizes.hpp"
#include "reports/writers.hpp"

namespace quantmap {

struct SizeReport {
  std::string model, model_type;
  SizeRequest request;
  std::vector<SizeRow> rows;
  std::vector<std::string> notes;  // of the model, and of reading it
};

std::string write_sizes(const SizeReport& report, const ModelMap& map, OutputFormat format, int width);

// One bar for each scheme, context and request count: weights in full, cache in shade, on one scale, with a
// mark where the memory ends (0: no memory given).
std::string size_picture(const SizeReport& report, const ModelMap& map, int width);

// `15.256 GiB` of a whole number of bytes, or of a fraction rounded up.
std::string size_text(double bytes);

}  // namespace quantmap
