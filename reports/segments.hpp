// Scores of the labelled parts of token ids, as `eval` prints them: a table for people, every field for
// programs.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "core/table.hpp"
#include "store/records.hpp"

namespace quantmap {

Table segment_summary(std::span<const SegmentRecord> segments);
nlohmann::ordered_json segment_rows(std::span<const SegmentRecord> segments);

}  // namespace quantmap
