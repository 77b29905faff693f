// Reading the golden vectors: floats are concatenated 8-digit hex bit patterns, bytes 2-digit hex in memory
// order (formats.md, section 13).
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/paths.hpp"

namespace quantmap::testing {

inline nlohmann::json vector_file(const std::string& name) {
  return nlohmann::json::parse(std::ifstream(vectors_dir() / (name + ".json")));
}

inline std::vector<std::uint32_t> words(const std::string& hex, std::size_t digits) {
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i + digits <= hex.size(); i += digits) {
    out.push_back(static_cast<std::uint32_t>(std::stoul(hex.substr(i, digits), nullptr, 16)));
  }
  return out;
}
inline std::vector<float> floats(const std::string& hex) {
  std::vector<float> out;
  for (const std::uint32_t word : words(hex, 8)) out.push_back(std::bit_cast<float>(word));
  return out;
}
// A list of hex strings, one a row, joined.
inline std::string joined(const nlohmann::json& rows) {
  std::string hex;
  for (const auto& row : rows) hex += row.get<std::string>();
  return hex;
}

// Equal to the bit; any NaN equals any NaN.
inline bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// Counts what a vector file checked; a file that checks nothing fails.
class Checked {
 public:
  void add(std::int64_t count = 1) { count_ += count; }
  ~Checked() {
    std::printf("%lld checked\n", static_cast<long long>(count_));
    EXPECT_GT(count_, 0);
  }

 private:
  std::int64_t count_ = 0;
};

template <class A, class B>
void expect_all_equal(const std::vector<A>& got, const std::vector<B>& want, const std::string& what,
                      Checked& checked) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(static_cast<std::int64_t>(got[i]), static_cast<std::int64_t>(want[i])) << what << " at " << i;
  }
  checked.add(static_cast<std::int64_t>(got.size()));
}
inline void expect_same_floats(const std::vector<float>& got, const std::vector<float>& want,
                               const std::string& what, Checked& checked) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(same(got[i], want[i])) << what << " at " << i << ": " << got[i] << " " << want[i];
  checked.add(static_cast<std::int64_t>(got.size()));
}

}  // namespace quantmap::testing
