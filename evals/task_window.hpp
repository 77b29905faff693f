// A task's item as one window of the engine: the tokens that all of its requests begin with are computed
// once, and each request is a branch behind them.
#pragma once

#include <span>

#include "evals/protocol.hpp"
#include "evals/task_items.hpp"
#include "kernels/divergence/divergence.hpp"

namespace quantmap {

// Branch i holds request i from its last shared token on (the first row that a target needs), without its
// last token, which is only a target. The prefix is as long as all requests agree and at most one token
// shorter than the shortest context. weight: targets. Throws Error (input) for an item without requests, or
// with an empty context or continuation.
EvalWindow item_window(const TaskItem& item);

// rows: of the window, one a token; those without a target are not read.
ItemAnswer item_answer(const EvalWindow& window, std::span<const TokenScore> rows);

}  // namespace quantmap
