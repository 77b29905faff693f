#include "tokenizer/added_tokens.hpp"

#include <algorithm>

#include "tokenizer/unicode.hpp"

namespace quantmap {
namespace {

bool word_before(std::string_view text, std::size_t offset) {
  return offset > 0 && is_word(previous_character(text, offset));
}

bool word_at(std::string_view text, std::size_t offset) {
  return offset < text.size() && is_word(next_character(text, offset));
}

// Where the white space that ends at `end` begins, not before `least`.
std::size_t space_begin(std::string_view text, std::size_t end, std::size_t least) {
  while (end > least) {
    std::size_t before = end;
    if (!is_white_space(previous_character(text, before))) break;
    end = before;
  }
  return std::max(end, least);
}

std::size_t space_end(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    std::size_t behind = begin;
    if (!is_white_space(next_character(text, behind))) break;
    begin = behind;
  }
  return begin;
}

}  // namespace

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens) : tokens_(tokens) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].content.empty()) continue;
    std::size_t node = 0;
    for (const char byte : tokens_[i].content) {
      const auto [edge, added] =
          nodes_[node].next.try_emplace(static_cast<unsigned char>(byte), nodes_.size());
      node = edge->second;
      if (added) nodes_.emplace_back();
    }
    nodes_[node].token = i + 1;
  }
}

AddedTokens::Found AddedTokens::longest_at(std::string_view text, std::size_t begin) const {
  Found found;
  std::size_t node = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const auto edge = nodes_[node].next.find(static_cast<unsigned char>(text[i]));
    if (edge == nodes_[node].next.end()) break;
    node = edge->second;
    if (nodes_[node].token > 0) found = {i + 1 - begin, &tokens_[nodes_[node].token - 1]};
  }
  return found;
}

std::vector<Segment> AddedTokens::find(std::string_view text) const {
  std::vector<Segment> segments;
  std::size_t covered = 0;
  for (std::size_t i = 0; !nodes_[0].next.empty() && i < text.size();) {
    const auto [length, token] = longest_at(text, i);
    if (length == 0) {
      ++i;
      continue;
    }
    std::size_t begin = i, end = i + length;
    i = end;
    if (token->special) continue;
    if (token->single_word && (word_before(text, begin) || word_at(text, end))) continue;
    begin = std::max(begin, covered);
    if (token->lstrip) begin = space_begin(text, begin, covered);
    if (token->rstrip) end = space_end(text, end);
    if (end <= begin) continue;
    if (begin > covered) segments.push_back({covered, begin, -1});
    segments.push_back({begin, end, token->id});
    covered = end;
  }
  if (covered < text.size()) segments.push_back({covered, text.size(), -1});
  return segments;
}

}  // namespace quantmap
