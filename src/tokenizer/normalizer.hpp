// `normalizer` of tokenizer.json: what happens to a text before it is cut.
#pragma once

#include <functional>
#include <string>

#include "tokenizer/json_access.hpp"

namespace quantmap {

using Normalizer = std::function<std::string(const std::string&)>;

// NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, Sequence, or null (nothing
// happens). Throws Error (input) naming another.
Normalizer parse_normalizer(const JsonPlace& json);

}  // namespace quantmap
