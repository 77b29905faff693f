// What an input that must be refused says.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace quantmap::testing {

// The line of the Error (input) that `body` throws; empty if it throws nothing.
inline std::string input_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
    return error.what();
  }
  return "";
}

// It is one line with all of `parts`.
inline void expect_line(const std::string& line, const std::vector<std::string>& parts) {
  ASSERT_FALSE(line.empty()) << "nothing was refused";
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  for (const std::string& part : parts)
    EXPECT_NE(line.find(part), std::string::npos) << part << " in: " << line;
}

}  // namespace quantmap::testing
