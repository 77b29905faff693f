// Pieces that were encoded before in the same text. Words repeat: a text of a megabyte has some ten thousand.
// A SentencePiece-style vocabulary has no pieces, but mostly no token that goes on from one word into the
// next (SentencePiece trains with split_by_whitespace): then a word's ids do not depend on its neighbours.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/bpe.hpp"

namespace quantmap {

// Whether no token of the vocabulary has U+2581 behind another character, and U+2581 is one itself (else it
// could join an unknown neighbour).
bool words_stay_apart(const Vocabulary& vocabulary);

class WordCache {
 public:
  using Encode = std::function<void(std::string_view, std::vector<std::int32_t>&)>;
  // `cut_words`: words_stay_apart() of what encodes.
  WordCache(Encode encode, bool cut_words) : encode_(std::move(encode)), cut_words_(cut_words) {}
  // Appends the ids of a piece.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids);

 private:
  void encode_word(std::string_view word, std::vector<std::int32_t>& ids);

  Encode encode_;
  bool cut_words_;
  std::unordered_map<std::string, std::vector<std::int32_t>, StringHash, std::equal_to<>> seen_;
};

}  // namespace quantmap
