// A pattern as tokenizer.json writes it: {"String": "…"} is literal text (B39), {"Regex": "…"} a pattern.
#pragma once

#include "tokenizer/json_access.hpp"
#include "tokenizer/pattern.hpp"

namespace quantmap {

inline TextPattern parse_pattern(const JsonPlace& json) {
  if (json.has("String")) return TextPattern::literal(json.string("String"), json.file());
  if (json.has("Regex")) return TextPattern::regex(json.string("Regex"), json.file());
  json.fail("String or Regex");
}

}  // namespace quantmap
