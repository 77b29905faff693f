// Small text helpers of the grammar. ASCII only: ids and words are ASCII, anything else is refused where it
// stands.
#pragma once

#include <string>
#include <string_view>

namespace quantmap {

inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

inline bool same_ignoring_case(std::string_view a, std::string_view b) {
  return lower_case(a) == lower_case(b);
}

}  // namespace quantmap
