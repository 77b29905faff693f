// SentencePiece-style merging of GGUF's `llama` vocabularies (llm_tokenizer_spm of llama.cpp): from
// characters, always merge the neighbours whose joined text is the token of highest score, leftmost first.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/bpe.hpp"
#include "tokenizer/gguf_vocabulary.hpp"

namespace quantmap {

class SpmMerger {
 public:
  // Throws Error (input) if a byte has neither a token nor an unknown token to stand for it.
  explicit SpmMerger(const GgufVocabulary& vocabulary);
  bool words_stay_apart() const { return words_stay_apart_; }  // word_cache.hpp
  // Appends the ids of `text` (well-formed UTF-8, spaces already written as U+2581).
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const;

 private:
  // What a text may merge into: not control, unknown or byte tokens, whose texts are names (as in
  // SentencePiece itself; S25).
  Vocabulary vocabulary_;
  std::vector<float> scores_;
  std::array<std::int32_t, 256> bytes_{};
  std::size_t longest_ = 0;
  bool words_stay_apart_ = false;
};

}  // namespace quantmap
