// The error that an expression throws, for tables of refused inputs.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "core/error.hpp"

namespace quantmap::testing {

struct Refusal {
  ErrorKind kind;
  std::string line;
};

template <typename Body>
std::optional<Refusal> refusal_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return Refusal{error.kind(), error.what()};
  }
  return std::nullopt;
}

// Refused with this kind, in one line that contains `part`.
template <typename Body>
void expect_refused(const Body& body, ErrorKind kind, const std::string& part, const std::string& input) {
  const auto refusal = refusal_of(body);
  ASSERT_TRUE(refusal) << "accepted: " << input;
  EXPECT_EQ(refusal->kind, kind) << input;
  EXPECT_NE(refusal->line.find(part), std::string::npos)
      << input << "\n  got: " << refusal->line << "\n  wants: " << part;
  EXPECT_EQ(refusal->line.find('\n'), std::string::npos) << input;
}

}  // namespace quantmap::testing
