// What the paired comparisons of a run say (evals/comparison.hpp): as notes for people, every field for
// programs.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "store/records.hpp"

namespace quantmap {

// Neighbours in the order by KL that the data cannot tell apart, each with how many more windows would; and
// the schemes whose perplexity cannot be told from the reference's. The noise floor is left out.
std::vector<std::string> comparison_notes(std::span<const EvaluationRecord> evaluations,
                                          std::span<const ComparisonRecord> comparisons);
nlohmann::ordered_json comparison_rows(std::span<const ComparisonRecord> comparisons);

// `not distinguishable (about 120 more windows would settle it)`
std::string verdict_text(const ComparisonRecord& comparison);

}  // namespace quantmap
