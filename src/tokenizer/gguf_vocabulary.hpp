// The vocabulary of a GGUF file as it stands there (`tokenizer.ggml.*`), checked; what the two kinds of GGUF
// tokenizers share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/gguf.hpp"

namespace quantmap {

enum class GgufTokenType : std::uint8_t { undefined, normal, unknown, control, user_defined, unused, byte };

struct GgufVocabulary {
  std::string file, model, pre;
  std::vector<std::string> tokens;  // by id
  std::vector<float> scores;        // as long as tokens, or empty
  std::vector<GgufTokenType> types;
  std::vector<std::string> merges;
  std::optional<std::int32_t> bos, eos, unknown;
  std::optional<bool> add_bos, add_space_prefix;

  // SHA-256 of all of it.
  std::string fingerprint() const;
};

// Throws Error (input) naming the key that is missing or wrong. An id outside the vocabulary counts as none,
// as llama.cpp has it (some files write 2^32-1 for none).
GgufVocabulary read_gguf_vocabulary(const GgufFile& file);

// A text with its user-defined tokens cut out: the longest token first, wherever it occurs, as llama.cpp
// does. Control tokens, and those that llama.cpp takes for control tokens by their name, stay text (S25).
class UserDefinedTokens {
 public:
  explicit UserDefinedTokens(const GgufVocabulary& vocabulary);
  struct Part {
    std::string_view text;
    std::int32_t id = -1;  // of the token that the text is; -1: other text
  };
  std::vector<Part> cut(std::string_view text) const;

 private:
  struct Token {
    std::string text;
    std::int32_t id;
  };
  std::vector<Token> tokens_;
};

}  // namespace quantmap
