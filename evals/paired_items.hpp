// Two schemes' answers to the same items, each right (1) or wrong (0): what changed, and whether it is more
// than chance.
#pragma once

#include <cstdint>
#include <span>

#include "evals/student_t.hpp"

namespace quantmap {

struct Flips {
  std::int64_t both = 0, only_a = 0, only_b = 0, neither = 0;  // items right in …
  std::int64_t items() const { return both + only_a + only_b + neither; }
  std::int64_t flipped() const { return only_a + only_b; }
};
// Error if the two do not have the same number of items.
Flips flips(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b);

// McNemar's exact test (McNemar, Psychometrika 12, 1947): under no difference each flipped item is a fair
// coin. Two-sided p = min(1, 2 P(X <= min(only_a, only_b))), X binomial(only_a + only_b, 1/2). 1 without
// flips.
double mcnemar(std::int64_t only_a, std::int64_t only_b);

// Accuracy of a less accuracy of b. stderr: the sample standard deviation (n - 1) of d_i in {-1, 0, 1} over
// sqrt n (formats.md, section 11); the interval is Student's t of n - 1 degrees; p is McNemar's. Undefined
// for no items, all but the difference for one.
struct AccuracyDifference {
  Number difference, stderr_of_difference;
  Interval interval;
  Number p;
};
AccuracyDifference accuracy_difference(const Flips& f);

}  // namespace quantmap
