// The difference of two schemes, from sums over windows of the same tokens, and whether the data support it.
//
// Paired (formats.md, section 11, for x = a - b): the ratio estimator of scores.hpp on the windows'
// differences,
//   difference = sum_w (a_w - b_w) / sum_w n_w
//   stderr^2   = C/(C-1) sum_w ((a_w - b_w) - n_w difference)^2 / n^2         (C windows, n = sum_w n_w)
// with Student's t of C - 1 degrees. What both schemes share (hard windows) cancels.
// Unpaired (other tokens): stderr^2 = stderr_a^2 + stderr_b^2, Welch's degrees (Welch, Biometrika 34, 1947).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "evals/scores.hpp"
#include "evals/student_t.hpp"

namespace quantmap {

struct Difference {
  Number difference;  // a - b
  Number stderr_of_difference, degrees;
  Interval interval;         // 95 %
  Number p;                  // two-sided, of no difference
  std::int64_t windows = 0;  // pairs with tokens; unpaired: those of the smaller side
};

// a, b: the same windows, token counts (or weights) and all, in order; Error if the counts differ. Sums that
// are not finite make every number undefined, as fewer than two windows make all but the difference.
Difference paired_difference(std::span<const Cluster> a, std::span<const Cluster> b);
Difference unpaired_difference(std::span<const Cluster> a, std::span<const Cluster> b);

enum class Verdict : std::uint8_t {
  undefined,            // not enough windows, or numbers that are not finite
  equal,                // no window differs at all
  lower,                // a is below b
  higher,               // a is above b
  not_distinguishable,  // the data support neither
};
std::string_view verdict_name(Verdict verdict);  // as rows say it: "not distinguishable"
// p: the difference's own, or the one adjusted for others looked at (holm.hpp).
Verdict verdict_of(const Difference& d, const Number& p, double confidence = kConfidence);

// How many more windows would make the interval exclude 0, if the difference and the spread of the windows
// stay as they are: the least N with t((1 + confidence) / 2, N - 1) stderr sqrt(C / N) < |difference|, less
// C. 0 where it does already; undefined where the difference is, is 0, or needs more than 1e9 windows.
Number windows_to_settle(const Difference& d, double confidence = kConfidence);

}  // namespace quantmap
