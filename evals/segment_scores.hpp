// A segment of a run's windows, such as the answers of a chat: its tokens alone, scored as the whole is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "evals/scores.hpp"

namespace quantmap {

// The tokens of `windows` whose label (`of_token[window]`, one a scored token, in order) is `segment`;
// windows without one are left out. Sums are taken anew from the stored float32 scores, each token weighing
// the same.
std::vector<WindowScores> scores_of_segment(std::span<const WindowScores> windows,
                                            const std::vector<std::vector<std::uint32_t>>& of_token,
                                            std::uint32_t segment);

}  // namespace quantmap
