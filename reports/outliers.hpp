// What `outliers` prints: where massive activations begin and sit, how heavy-tailed each site is, and what
// share of each format's error they carry; every field for programs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/table.hpp"
#include "reports/writers.hpp"
#include "store/records.hpp"

namespace quantmap {

// Of one run, as they were stored; schemes by position.
struct OutlierRows {
  std::vector<SchemeRecord> schemes;
  std::vector<OutlierRecord> outliers;
  std::vector<SiteStatisticsRecord> statistics;
  std::vector<OutlierShareRecord> shares;
};

std::string write_outliers(const RunRecord& run, const OutlierRows& rows, OutputFormat format, int width);

// Tokens and channels that are massive somewhere: where each begins and ends, and its largest value.
Table massive_activations(const RunRecord& run, const OutlierRows& rows);
// Sites by module: the layer with the largest crest factor and the one with the largest kurtosis.
Table heavy_sites(const OutlierRows& rows);
// Each scheme and module: the share of the squared error, summed over layers.
Table error_shares(const OutlierRows& rows);

}  // namespace quantmap
