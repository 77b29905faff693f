// What `diff RUN RUN` prints: two runs side by side, differences as the second less the first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/writers.hpp"
#include "store/records.hpp"

namespace quantmap {

// A scheme that both runs have, by full spelling.
struct MetricChange {
  std::string metric;    // kl_mean | ln_ppl_ratio (of the second's perplexity to the first's)
  Number first, second;  // KL; perplexity
  bool paired = false;
  ComparisonRecord change;  // scheme and than_scheme: its names in the second and in the first
};

struct TaskChange {
  std::string scheme, task;
  std::int64_t items = 0;                                                // that both runs answered
  Number first, second, difference, stderr_of_difference, low, high, p;  // of acc; p: McNemar's, exact
  std::int64_t only_first = 0, only_second = 0;                          // right in one run alone
  std::string verdict;
};

struct LayerChange {
  LayerErrorRecord first, second;
  std::string scheme;
};

struct RunDiff {
  RunRecord first, second;
  std::vector<MetricChange> metrics;
  std::vector<TaskChange> tasks;
  std::int64_t layer_rows = 0, layer_equal = 0;      // in both; of these, equal in every error to the bit
  std::vector<LayerChange> layers;                   // those that are not, the largest change first
  std::vector<std::string> only_first, only_second;  // schemes
  std::vector<std::string> notes;                    // what makes the two hard to compare
};

std::string write_diff(const RunDiff& diff, OutputFormat format, int width);

}  // namespace quantmap
