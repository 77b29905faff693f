#include "tokenizer/split.hpp"

#include <algorithm>

namespace quantmap {
namespace {

// Each match joins the piece before it, unless that is itself a match's: in `a--b`, `a-` and `-` and `b`.
template <typename Iterator, typename Join>
std::vector<TextRange> join_matches(Iterator begin, Iterator end, Join join) {
  std::vector<TextRange> pieces;
  bool previous_match = false;
  for (; begin != end; ++begin) {
    if (begin->match && !previous_match && !pieces.empty())
      join(pieces.back(), *begin);
    else
      pieces.push_back(*begin);
    previous_match = begin->match;
  }
  return pieces;
}

std::vector<TextRange> contiguous(const std::vector<TextRange>& ranges) {
  std::vector<TextRange> pieces;
  bool previous_match = false;
  for (const TextRange& range : ranges) {
    if (range.match == previous_match && !pieces.empty())
      pieces.back().end = range.end;
    else
      pieces.push_back(range);
    previous_match = range.match;
  }
  return pieces;
}

}  // namespace

std::vector<TextRange> split_ranges(const std::vector<TextRange>& ranges, SplitBehavior behavior) {
  std::vector<TextRange> pieces;
  switch (behavior) {
    case SplitBehavior::removed:
      for (const TextRange& range : ranges)
        if (!range.match) pieces.push_back(range);
      break;
    case SplitBehavior::isolated:
      pieces = ranges;
      break;
    case SplitBehavior::merged_with_previous:
      pieces = join_matches(ranges.begin(), ranges.end(),
                            [](TextRange& piece, const TextRange& match) { piece.end = match.end; });
      break;
    case SplitBehavior::merged_with_next:
      pieces = join_matches(ranges.rbegin(), ranges.rend(),
                            [](TextRange& piece, const TextRange& match) { piece.begin = match.begin; });
      std::reverse(pieces.begin(), pieces.end());
      break;
    case SplitBehavior::contiguous:
      pieces = contiguous(ranges);
      break;
  }
  std::erase_if(pieces, [](const TextRange& piece) { return piece.begin == piece.end; });
  return pieces;
}

}  // namespace quantmap
