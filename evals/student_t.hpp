// Student's t, as intervals and tests over windows use it (product.md: windows - 1 degrees of freedom). The
// quantile and the tail are Boost.Math's.
#pragma once

#include "core/number.hpp"

namespace quantmap {

inline constexpr double kConfidence = 0.95;  // of every interval that is shown

struct Interval {
  Number low, high;  // empty: undefined
};

// P(T <= t) = p; p in (0, 1), degrees > 0.
double student_t_quantile(double p, double degrees);
// P(|T| >= |t|): the two-sided p-value. degrees > 0.
double student_t_two_sided(double t, double degrees);

// value ± t((1 + confidence) / 2, degrees) stderr. Undefined where value or stderr is, or degrees < 1.
Interval t_interval(const Number& value, const Number& stderr_of_value, double degrees,
                    double confidence = kConfidence);

}  // namespace quantmap
