// Windows given as token ids (product.md, --token-ids), with or without a mask of what is scored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evals/protocol.hpp"

namespace quantmap {

struct IdWindow {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t>
      score;  // as long as ids, or empty: by the protocol's rule. 1: the token is scored
  std::vector<std::string> segments;  // as long as ids, or empty: the label of each token
};

// A JSON array of windows: arrays of token ids, all of one length; or objects {"ids": […], "score": […],
// "segment": …}, each of its own length: score has 0 or 1 (or false, true) a token, of which at least one
// behind the first is scored; segment a label a token, or one label for all. Ids in [0, vocab). Throws Error
// (input).
std::vector<IdWindow> read_token_ids(const std::string& path, std::int64_t vocab);
bool has_masks(const std::vector<IdWindow>& windows);  // a score or a segment anywhere

// What is scored of a window; no BOS is added. The first token of a window has nothing to be predicted from.
std::vector<EvalWindow> windows_of_ids(const std::vector<IdWindow>& windows, const Protocol& protocol);

// The labels of a run's scored tokens: `names` in order of appearance, `of_token[window]` an index a scored
// token, in the order of its scores. Windows without labels have the name "". Empty where none has a label.
struct Segments {
  std::vector<std::string> names;
  std::vector<std::vector<std::uint32_t>> of_token;
};
Segments segments_of(const std::vector<IdWindow>& windows, const std::vector<EvalWindow>& cut);

}  // namespace quantmap
