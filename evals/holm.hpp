// Holm's step-down control of the family-wise error (Holm, Scandinavian Journal of Statistics 6, 1979): with
// every pair of a sweep looked at, the chance of calling any equal pair different stays below 1 - confidence,
// whatever depends on what.
#pragma once

#include <span>
#include <vector>

#include "core/number.hpp"

namespace quantmap {

struct HolmTest {
  Number p;               // adjusted: max over smaller or equal p_(j) of min(1, (m - j) p_(j)), j from 0
  double tests_left = 1;  // m - j: what this p-value was multiplied with
};
// One for each p, in the order given. Undefined p's stay so and do not count.
std::vector<HolmTest> holm(std::span<const Number> p);

}  // namespace quantmap
