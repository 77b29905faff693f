// What is scored and how a text is cut: the conventions behind the word "perplexity" (formats.md, section 11;
// faults B49). Each protocol is a row of defaults; single options override it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/row_range.hpp"

namespace quantmap {

enum class ScoreRule : std::uint8_t {
  all,          // every target but a window's first token (or every one not scored before, with a stride)
  second_half,  // targets at positions ctx/2+1 … ctx-1 (llama.cpp)
  hf_weights,   // as all; window means weighted by their length less one, as transformers' documented code
                // does
};
enum class BosRule : std::uint8_t { automatic, always, never };
enum class Cutting : std::uint8_t {
  disjoint,  // windows of ctx tokens, a short rest dropped
  strided,   // overlapping windows, each scoring what is new (transformers' documentation)
  rolling,   // every token a target once, the last window extended to the left (lm-evaluation-harness)
};

struct Protocol {
  std::string name;  // empty: quantmap's own defaults
  std::int64_t ctx = 0;
  std::int64_t stride = 0;  // strided only
  ScoreRule score = ScoreRule::all;
  BosRule bos = BosRule::automatic;
  Cutting cutting = Cutting::disjoint;
  bool bos_every_window =
      true;  // the first token of every window is overwritten; false: at the very start only
};
const char* score_name(ScoreRule rule);
const char* bos_name(BosRule rule);

struct ProtocolOptions {
  std::string protocol;  // llama.cpp | gptq | hf | lm-eval, or empty
  std::optional<std::int64_t> ctx, stride;
  std::optional<std::string> score, bos;
};
// Throws Error (usage) naming the option that does not fit. model_limit: positions the model was made for.
Protocol resolve_protocol(const ProtocolOptions& options, std::int64_t model_limit);

// One window: what goes in, and what each row is asked for. A window of a text has no branches; one of a
// task's item has one a request behind the prefix they share (task_window.hpp).
struct EvalWindow {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> targets;  // as long as ids; the token that position's logits are scored on, or -1
  double weight = 0;                  // of its mean NLL in the total; targets scored, but for hf_weights
  std::int64_t prefix = 0;            // rows that all branches see
  std::vector<RowRange> branches;     // rows of each; positions go on from the prefix
  bool is_item() const { return !branches.empty(); }
  std::int64_t first_row() const;  // rows that are scored lie in [first_row, last_row)
  std::int64_t last_row() const;
  std::int64_t scored() const;
};

struct CutText {
  std::vector<EvalWindow> windows;
  std::int64_t dropped_tokens = 0;  // of the text's end, not in any window
  bool bos_added = false;
};
// ids: the whole text's, without BOS. bos: the id to use if the rule asks for one. Throws Error (input) if
// the text is shorter than one window, Error (usage) if BOS is asked for and the tokenizer has none.
CutText cut_text(std::span<const std::int32_t> ids, const Protocol& protocol, bool tokenizer_adds_bos,
                 std::optional<std::int32_t> bos, std::optional<std::int32_t> eos,
                 std::string_view text_name);

// Windows given as token ids (product.md, --token-ids): scored by the protocol's rule, no BOS added.
std::vector<EvalWindow> windows_of_ids(std::vector<std::vector<std::int32_t>> windows,
                                       const Protocol& protocol);

}  // namespace quantmap
