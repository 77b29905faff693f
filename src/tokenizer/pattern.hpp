// Patterns that cut a text: PCRE2 standing in for Oniguruma, which HF tokenizers uses. Syntax that means the
// same in both is passed on, syntax with another meaning is rewritten, and what can be neither is refused by
// name, so a pattern never means something else silently.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace quantmap {

// GPT-2's (encoder.py of openai/gpt-2): what HF tokenizers' ByteLevel and llama.cpp's `gpt-2` cut at.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct TextRange {
  std::size_t begin = 0, end = 0;
  bool match = false;
};

class TextPattern {
 public:
  // Throws Error (input) naming `file` and the pattern if it cannot be compiled or is refused.
  static TextPattern regex(std::string_view oniguruma, const std::string& file);
  static TextPattern literal(std::string_view text, const std::string& file);

  // Matches and what lies between them, in order, covering well-formed UTF-8 `text`. Empty matches are empty
  // ranges, never directly behind a match. Thread-safe. Throws Error (input) where matching needs more steps
  // than a fixed multiple of the text's length (a pattern that backtracks exponentially).
  std::vector<TextRange> find(std::string_view text) const;

 private:
  TextPattern(std::string_view pcre, unsigned options, std::string_view shown, const std::string& file);
  std::shared_ptr<const void> code_;
  std::string shown_;
};

// The PCRE2 spelling of an Oniguruma (Ruby syntax) pattern; throws Error (input).
std::string pcre_from_oniguruma(std::string_view pattern, const std::string& file);

}  // namespace quantmap
