// A small run with every field set, each to a value of its own.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "store/database.hpp"
#include "store/fields.hpp"

namespace quantmap::testing {

inline void fill(std::string& value, int n) { value = "text " + std::to_string(n); }
inline void fill(std::int64_t& value, int n) { value = 1000000007LL * n; }
inline void fill(bool& value, int n) { value = n % 2 == 0; }
inline void fill(Number& value, int n) { value = std::sqrt(static_cast<double>(n + 2)) / 3; }

template <class Record>
Record filled(int n) {
  Record record;
  store::for_each_field<Record>(
      [&](const auto& field, int index) { fill(field.of(record), 100 * n + index); });
  return record;
}

// Equal field by field, to the bit.
template <class Record>
bool same(const Record& a, const Record& b) {
  bool equal = true;
  store::for_each_field<Record>([&](const auto& field, int) { equal = equal && field.of(a) == field.of(b); });
  return equal;
}

inline std::vector<SchemeRecord> sample_schemes(int count) {
  std::vector<SchemeRecord> schemes;
  for (int i = 0; i < count; ++i) {
    schemes.push_back(filled<SchemeRecord>(i));
    schemes.back().position = i;
  }
  return schemes;
}

// The windows [first, first + count) of every scheme.
inline std::vector<WindowRecord> sample_windows(int schemes, int first, int count) {
  std::vector<WindowRecord> windows;
  for (int w = first; w < first + count; ++w)
    for (int s = 0; s < schemes; ++s)
      windows.push_back({s, w, std::string("\0bytes\xFF", 7) + std::to_string(w), std::to_string(s)});
  return windows;
}

inline std::vector<StateRecord> sample_states(int schemes, const std::string& state) {
  std::vector<StateRecord> states;
  for (int s = 0; s < schemes; ++s) states.push_back({s, state});
  return states;
}

}  // namespace quantmap::testing
