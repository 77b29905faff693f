// `pre_tokenizer` of tokenizer.json: how a normalized text is cut into pieces that merging never crosses.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tokenizer/json_access.hpp"
#include "tokenizer/pattern.hpp"

namespace quantmap {

struct TextPiece {
  std::string text;
  bool at_start = false;  // starts where the whole text starts (Metaspace's prepend_scheme `first`)
};

struct PreTokenizer {
  std::function<std::vector<TextPiece>(std::vector<TextPiece>)> run;
  bool byte_level = false;  // pieces come out in the byte-level spelling
};

// ByteLevel, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, CharDelimiterSplit, Metaspace,
// Sequence, or null (one piece). Throws Error (input) naming another.
PreTokenizer parse_pre_tokenizer(const JsonPlace& json);

// Patterns one after the other, each cutting the pieces of the one before at its matches; then the byte-level
// spelling. GGUF's `tokenizer.ggml.pre` variants are such chains.
PreTokenizer byte_level_chain(const std::vector<TextPattern>& patterns);

}  // namespace quantmap
