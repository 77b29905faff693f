// A task's prompts as token ids (conventions of lm-evaluation-harness, formats.md, section 11):
//   - White space at the context's end moves to the continuation.
//   - Context = encode(context), after one BOS where the rule or the tokenizer asks for one (B41).
//   Continuation =
//     what encode(context + continuation) has behind as many tokens.
//   - An empty context becomes BOS, EOS if there is none, whatever the rule.
//   - The model sees all but the last token of a request. Where that is longer than `limit`, the context's
//   left
//     end is cut, BOS with it, and the cut tokens are counted.
#pragma once

#include <cstdint>
#include <vector>

#include "evals/protocol.hpp"
#include "evals/task_items.hpp"
#include "evals/task_prompts.hpp"
#include "tokenizer/tokenizer.hpp"

namespace quantmap {

// `limit`: positions that the model was made for. Throws Error (input) naming task, file, record and choice:
// a continuation of no tokens or of more than `limit`, an empty context without BOS and EOS; Error (usage)
// where BOS is asked for and there is none.
std::vector<TaskItem> task_tokens(const Task& task, const TaskData& data,
                                  const std::vector<ItemPrompts>& prompts, const Tokenizer& tokenizer,
                                  std::int64_t limit, BosRule bos = BosRule::automatic);

// SHA-256 of all that scores depend on beside the model: every request's ids, lengths and the gold.
std::string fingerprint_of(const std::vector<TaskItem>& items);

}  // namespace quantmap
