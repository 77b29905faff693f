// Byte-pair encoding (Sennrich et al. 2016) as HF tokenizers and llama.cpp apply it: start from single
// characters, then always merge the pair of lowest rank, leftmost first. O(n log n) in the length of a piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace quantmap {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using Vocabulary = std::unordered_map<std::string, std::int32_t, StringHash, std::equal_to<>>;

struct BpeOptions {
  bool byte_fallback =
      false;  // a character not in the vocabulary becomes its bytes' `<0xNN>`, if all are there
  std::optional<std::int32_t>
      unknown;                 // else this; without one the character is dropped, as the references do
  bool fuse_unknown = false;   // neighbours share one
  bool ignore_merges = false;  // a piece that is in the vocabulary is that token
};

class Bpe {
 public:
  // Merges in order of rank. Of a pair listed twice, `last_rank_wins` says which place counts (HF tokenizers:
  // the last, llama.cpp: the first). Throws Error (input) naming `file`, the merge and the part if a part or
  // the result is not in the vocabulary.
  Bpe(Vocabulary vocabulary, const std::vector<std::pair<std::string, std::string>>& merges,
      bool last_rank_wins, const BpeOptions& options, const std::string& file);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::size_t merge_count() const { return merges_.size(); }
  // No token holds a word's end and the next word's start, so words may be encoded one by one
  // (word_cache.hpp).
  bool words_stay_apart() const { return words_stay_apart_; }
  // Appends the ids of one piece (well-formed UTF-8).
  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const;

 private:
  struct Merge {
    std::int32_t rank, result;
  };
  struct Symbol;
  std::vector<Symbol> characters(std::string_view piece) const;
  void merge_all(std::vector<Symbol>& symbols) const;
  const Merge* find_merge(std::int32_t left, std::int32_t right) const;

  Vocabulary vocabulary_;
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::vector<std::int32_t> bytes_;  // ids of <0x00> … <0xFF>, -1 where absent; empty without byte fallback
  BpeOptions options_;
  bool words_stay_apart_ = false;
};

}  // namespace quantmap
