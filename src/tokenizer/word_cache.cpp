#include "tokenizer/word_cache.hpp"

#include <algorithm>

namespace quantmap {
namespace {

constexpr std::string_view kMark = "\u2581";
constexpr std::size_t kLongestCached = 64, kMostCached = std::size_t{1} << 20;

// Where the word at the start of `text` ends: before the first mark behind another character.
std::size_t word_end(std::string_view text) {
  std::size_t at = 0;
  while (text.substr(at).starts_with(kMark)) at += kMark.size();
  return std::min(text.find(kMark, at), text.size());
}

}  // namespace

bool words_stay_apart(const Vocabulary& vocabulary) {
  return vocabulary.contains(kMark) &&
         std::all_of(vocabulary.begin(), vocabulary.end(),
                     [](const auto& entry) { return word_end(entry.first) == entry.first.size(); });
}

void WordCache::encode(std::string_view piece, std::vector<std::int32_t>& ids) {
  if (!cut_words_) return encode_word(piece, ids);
  while (!piece.empty()) {
    const std::size_t end = word_end(piece);
    encode_word(piece.substr(0, end), ids);
    piece.remove_prefix(end);
  }
}

void WordCache::encode_word(std::string_view word, std::vector<std::int32_t>& ids) {
  if (word.size() > kLongestCached) return encode_(word, ids);
  auto found = seen_.find(word);
  if (found == seen_.end()) {
    if (seen_.size() >= kMostCached) seen_.clear();
    found = seen_.emplace(word, std::vector<std::int32_t>()).first;
    encode_(word, found->second);
  }
  ids.insert(ids.end(), found->second.begin(), found->second.end());
}

}  // namespace quantmap
