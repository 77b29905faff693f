// Items of a task as token ids: what is asked of a model, and what is right (formats.md, section 11, Multiple
// choice; conventions of lm-evaluation-harness). A request is one continuation after one context.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quantmap {

struct TaskRequest {
  std::vector<std::int32_t> context;       // never empty: BOS (EOS if there is none) stands for an empty one
  std::vector<std::int32_t> continuation;  // never empty; its log-likelihood given the context is measured
  std::int64_t characters =
      0;                   // of the continuation without the delimiter before it, in code points (acc_norm)
  std::int64_t bytes = 0;  // the same in UTF-8 (acc_bytes)
  std::int64_t cut_tokens =
      0;  // of the context's left end, where the request is longer than the model's limit
};

struct TaskItem {
  std::int64_t index = 0;  // among the records of its task, zero-based
  std::vector<TaskRequest> requests;
  std::vector<std::int32_t> gold;  // requests that are right: one, or several (TruthfulQA mc2)
};

// What one scheme makes of an item.
struct ItemAnswer {
  std::vector<double>
      loglikelihood;                 // nats, one a request: the sum over its continuation's tokens; NaN stays
  std::vector<std::uint8_t> greedy;  // 1: every token of the continuation is the argmax
};

}  // namespace quantmap
