// Compensated summation in double (Neumaier 1974, "Rundungsfehleranalyse einiger Verfahren zur Summation
// endlicher Summen", algorithm IV): error independent of the number of terms. Mergeable: adding another sum's
// parts gives what adding its terms would, to the same bound.
#pragma once

#include <cmath>

namespace quantmap {

class Sum {
 public:
  void add(double term) {
    const double next = sum_ + term;
    rest_ += std::abs(sum_) >= std::abs(term) ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
  }
  void merge(const Sum& other) {
    add(other.sum_);
    add(other.rest_);
  }
  double value() const { return sum_ + rest_; }

 private:
  double sum_ = 0;
  double rest_ = 0;
};

}  // namespace quantmap
