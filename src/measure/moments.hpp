// Central moments of a tensor that comes row by row, and its kurtosis (formats.md, section 11). Merged with
// the pairwise formulas of Chan, Golub and LeVeque (1979) and Pébay (2008, SAND2008-6212), never from raw
// powers: a large mean does not drown the rest.
#pragma once

#include <cstdint>

#include "core/number.hpp"
#include "kernels/moments/moments.hpp"

namespace quantmap {

class Moments {
 public:
  void merge(const RowMoments& row);
  void merge(const Moments& other) { merge(other.sums_); }
  std::int64_t count() const { return sums_.count; }
  double mean() const { return sums_.mean; }
  // Pearson's, of the population: (mean (x-mu)^4) / (mean (x-mu)^2)^2, 3 for a normal distribution. Undefined
  // where all values are one, and where the fourth powers leave double's range.
  Number kurtosis() const;

 private:
  RowMoments sums_;
};

}  // namespace quantmap
