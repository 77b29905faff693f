// What `error` prints: for people the worst places first (by the median row) and a table of layers; every
// field for programs (product.md, `error --format json`).
#pragma once

#include <span>
#include <string>

#include "core/table.hpp"
#include "reports/writers.hpp"
#include "store/records.hpp"

namespace quantmap {

// schemes: of the run, by position; errors: as they were stored.
std::string write_errors(const RunRecord& run, std::span<const SchemeRecord> schemes,
                         std::span<const LayerErrorRecord> errors, OutputFormat format, int width);

// Each scheme, kind and scope: its sum, and the three places that are hit hardest.
Table error_summary(const RunRecord& run, std::span<const SchemeRecord> schemes,
                    std::span<const LayerErrorRecord> errors);
// A scheme's layers: of each kind the worst median row among the layer's sites.
Table error_layers(const SchemeRecord& scheme, std::span<const LayerErrorRecord> errors);
// Every field.
Table error_rows(std::span<const SchemeRecord> schemes, std::span<const LayerErrorRecord> errors);
std::string error_json(const RunRecord& run, std::span<const SchemeRecord> schemes,
                       std::span<const LayerErrorRecord> errors);

}  // namespace quantmap
