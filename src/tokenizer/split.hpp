// Cutting a text where a pattern matches: the behaviours of `Split` in tokenizer.json.
#pragma once

#include <string_view>
#include <vector>

#include "tokenizer/pattern.hpp"

namespace quantmap {

enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// The pieces that `ranges` (covering a text in order) become; empty ones are left out.
std::vector<TextRange> split_ranges(const std::vector<TextRange>& ranges, SplitBehavior behavior);

}  // namespace quantmap
