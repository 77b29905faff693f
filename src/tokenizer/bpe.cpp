#include "tokenizer/bpe.hpp"

#include <fmt/format.h>

#include <queue>

#include "core/error.hpp"
#include "tokenizer/unicode.hpp"
#include "tokenizer/word_cache.hpp"

namespace quantmap {
namespace {

constexpr std::int32_t kNone = -1;

std::uint64_t key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

struct Candidate {
  std::int32_t rank, position, result;
  bool operator>(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

}  // namespace

// Symbols are a list linked by index; a symbol merged into its left neighbour has id kNone.
struct Bpe::Symbol {
  std::int32_t id, previous, next;
};

Bpe::Bpe(Vocabulary vocabulary, const std::vector<std::pair<std::string, std::string>>& merges,
         bool last_rank_wins, const BpeOptions& options, const std::string& file)
    : vocabulary_(std::move(vocabulary)), options_(options) {
  const auto id_of = [&](const std::string& token, std::size_t rank) {
    const auto found = vocabulary_.find(token);
    if (found == vocabulary_.end())
      fail_input("tokenizer", file,
                 fmt::format("merge {} ({} + {}): {} is not in the vocabulary", rank,
                             quoted(merges[rank].first), quoted(merges[rank].second), quoted(token)));
    return found->second;
  };
  merges_.reserve(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const std::uint64_t pair = key(id_of(left, rank), id_of(right, rank));
    const Merge merge{static_cast<std::int32_t>(rank), id_of(left + right, rank)};
    if (last_rank_wins)
      merges_.insert_or_assign(pair, merge);
    else
      merges_.emplace(pair, merge);
  }
  // A whole piece that is a token is not the same as its words that are.
  words_stay_apart_ = !options_.ignore_merges && quantmap::words_stay_apart(vocabulary_);
  if (options_.byte_fallback)
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = vocabulary_.find(fmt::format("<0x{:02X}>", byte));
      bytes_.push_back(found == vocabulary_.end() ? kNone : found->second);
    }
}

const Bpe::Merge* Bpe::find_merge(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

std::vector<Bpe::Symbol> Bpe::characters(std::string_view piece) const {
  std::vector<Symbol> symbols;
  const auto add = [&](std::int32_t id) {
    const auto index = static_cast<std::int32_t>(symbols.size());
    if (index > 0) symbols.back().next = index;
    symbols.push_back({id, index - 1, kNone});
  };
  bool unknown_pending = false;
  for (std::size_t i = 0; i < piece.size();) {
    const std::size_t begin = i;
    next_character(piece, i);
    const std::string_view character = piece.substr(begin, i - begin);
    if (const auto found = vocabulary_.find(character); found != vocabulary_.end()) {
      if (unknown_pending) add(*options_.unknown);
      unknown_pending = false;
      add(found->second);
      continue;
    }
    bool all_bytes = options_.byte_fallback;
    for (const char byte : character)
      all_bytes = all_bytes && bytes_[static_cast<unsigned char>(byte)] != kNone;
    if (all_bytes) {
      for (const char byte : character) add(bytes_[static_cast<unsigned char>(byte)]);
    } else if (options_.unknown) {
      if (unknown_pending && !options_.fuse_unknown) add(*options_.unknown);
      unknown_pending = true;
    }
  }
  if (unknown_pending) add(*options_.unknown);
  return symbols;
}

void Bpe::merge_all(std::vector<Symbol>& symbols) const {
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](std::int32_t position) {
    if (position == kNone) return;
    const Symbol& left = symbols[static_cast<std::size_t>(position)];
    if (left.next == kNone) return;
    const Merge* merge = find_merge(left.id, symbols[static_cast<std::size_t>(left.next)].id);
    if (merge) queue.push({merge->rank, position, merge->result});
  };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) consider(static_cast<std::int32_t>(i));
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = symbols[static_cast<std::size_t>(top.position)];
    if (left.id == kNone || left.next == kNone) continue;
    Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    // An entry is stale if its pair is no longer there; another pair with the same result is as good.
    const Merge* merge = find_merge(left.id, right.id);
    if (!merge || merge->result != top.result) continue;
    left.id = top.result;
    left.next = right.next;
    right.id = kNone;
    if (left.next != kNone) symbols[static_cast<std::size_t>(left.next)].previous = top.position;
    consider(left.previous);
    consider(top.position);
  }
}

void Bpe::encode(std::string_view piece, std::vector<std::int32_t>& ids) const {
  if (options_.ignore_merges)
    if (const auto found = vocabulary_.find(piece); found != vocabulary_.end()) {
      ids.push_back(found->second);
      return;
    }
  std::vector<Symbol> symbols = characters(piece);
  merge_all(symbols);
  for (const Symbol& symbol : symbols)
    if (symbol.id != kNone) ids.push_back(symbol.id);
}

}  // namespace quantmap
