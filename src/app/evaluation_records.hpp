// What a sweep measured, as rows of the database.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "evals/comparison.hpp"
#include "evals/scores.hpp"
#include "evals/token_ids.hpp"
#include "scheme/scheme.hpp"
#include "store/records.hpp"
#include "sweep/sweep.hpp"

namespace quantmap {

std::vector<OutlierRecord> outlier_records(const std::vector<LayerPeak>& peaks);
// The reference, then the schemes as they were given.
std::vector<Walker> scheme_walkers(const std::vector<Scheme>& schemes, Compute compute);
std::vector<SchemeRecord> scheme_records(const std::vector<Scheme>& schemes);
// Patterns of a scheme that no module of the model falls under.
std::vector<std::string> unused_notes(const Scheme& scheme, int layers);
// The fields that plain error sums give.
void fill_errors(LayerErrorRecord& record, const ErrorSums& sums);
// Errors of the residual stream after each layer.
std::vector<LayerErrorRecord> layer_records(std::int64_t position, const WalkerState& state);
// `rules`: null for the reference and the noise floor.
EvaluationRecord evaluation_record(const SchemeRecord& scheme, const ScoreSummary& summary,
                                   const Scheme* rules, const WalkerState& state, const ModelConfig& config);
std::vector<ComparisonRecord> comparison_records(const std::vector<SchemeRecord>& schemes,
                                                 const std::vector<Comparison>& comparisons);
// Every label's tokens of every scheme, by label; of_scheme: by position, the reference first.
std::vector<SegmentRecord> segment_records(const std::vector<SchemeRecord>& schemes,
                                           const std::vector<std::vector<WindowScores>>& of_scheme,
                                           const Segments& segments);
// A gate's exact columns, by name; empty where the row has no value.
Number gate_column(const EvaluationRecord& evaluation, std::string_view name);
// A checkpoint whose stored values lie on a coarse grid: said in every row.
std::vector<std::string> grid_notes(const Checkpoint& checkpoint);

}  // namespace quantmap
