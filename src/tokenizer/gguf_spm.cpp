#include "tokenizer/gguf_spm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "core/error.hpp"
#include "tokenizer/unicode.hpp"
#include "tokenizer/word_cache.hpp"

namespace quantmap {
namespace {

constexpr std::int32_t kNone = -1;

// A list linked by index over the text; a symbol merged into its left neighbour has size 0.
struct Symbol {
  std::size_t begin, size;
  std::int32_t previous, next;
};

struct Candidate {
  float score;
  std::int32_t left, right;
  std::size_t size;
  bool operator<(const Candidate& other) const {
    return score != other.score ? score < other.score : left > other.left;
  }
};

}  // namespace

SpmMerger::SpmMerger(const GgufVocabulary& vocabulary) : scores_(vocabulary.scores) {
  if (scores_.empty()) fail_input("tokenizer", vocabulary.file, "no key tokenizer.ggml.scores");
  Vocabulary names;
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string& text = vocabulary.tokens[i];
    const GgufTokenType type = vocabulary.types[i];
    const auto id = static_cast<std::int32_t>(i);
    if (text.empty()) continue;
    if (!names.emplace(text, id).second)
      fail_input("tokenizer", vocabulary.file, fmt::format("token {} {} is there twice", i, quoted(text)));
    if (type == GgufTokenType::control || type == GgufTokenType::unknown || type == GgufTokenType::byte)
      continue;
    vocabulary_.emplace(text, id);
    longest_ = std::max(longest_, text.size());
  }
  words_stay_apart_ = quantmap::words_stay_apart(vocabulary_);
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
    const auto found = names.find(fmt::format("<0x{:02X}>", byte));
    if (found == names.end() && !vocabulary.unknown)
      fail_input("tokenizer", vocabulary.file, fmt::format("no token <0x{:02X}> and no unknown token", byte));
    bytes_[byte] = found != names.end() ? found->second : *vocabulary.unknown;
  }
}

void SpmMerger::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  std::vector<Symbol> symbols;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    next_character(text, i);
    const auto index = static_cast<std::int32_t>(symbols.size());
    symbols.push_back({begin, i - begin, index - 1, i < text.size() ? index + 1 : kNone});
  }
  const auto symbol = [&](std::int32_t index) -> Symbol& { return symbols[static_cast<std::size_t>(index)]; };
  std::priority_queue<Candidate> queue;
  const auto consider = [&](std::int32_t left, std::int32_t right) {
    if (left == kNone || right == kNone) return;
    const std::size_t size = symbol(left).size + symbol(right).size;
    if (size > longest_) return;
    const auto found = vocabulary_.find(text.substr(symbol(left).begin, size));
    if (found != vocabulary_.end())
      queue.push({scores_[static_cast<std::size_t>(found->second)], left, right, size});
  };
  for (std::int32_t i = 1; i < static_cast<std::int32_t>(symbols.size()); ++i) consider(i - 1, i);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = symbol(top.left);
    Symbol& right = symbol(top.right);
    // Stale: one of the two was merged or has grown since.
    if (left.size == 0 || right.size == 0 || left.size + right.size != top.size) continue;
    left.size += right.size;
    right.size = 0;
    left.next = right.next;
    if (left.next != kNone) symbol(left.next).previous = top.left;
    consider(left.previous, top.left);
    consider(top.left, left.next);
  }
  for (const Symbol& one : symbols) {
    if (one.size == 0) continue;
    const std::string_view piece = text.substr(one.begin, one.size);
    if (const auto found = vocabulary_.find(piece); found != vocabulary_.end()) {
      ids.push_back(found->second);
      continue;
    }
    for (const char byte : piece) ids.push_back(bytes_[static_cast<unsigned char>(byte)]);
  }
}

}  // namespace quantmap
