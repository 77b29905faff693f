// Divergences of many distributions (KL in nats, one a query): mean, largest, quantiles. Mergeable, in order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/number.hpp"
#include "measure/error_sums.hpp"

namespace quantmap {

class DivergenceSums {
 public:
  void add(double divergence) {
    ++count_;
    rows_.add(divergence);
    if (!std::isfinite(divergence)) {
      ++nonfinite_;
      return;
    }
    sum_ += divergence;
    largest_ = std::max(largest_, divergence);
  }
  void merge(const DivergenceSums& other) {
    count_ += other.count_;
    nonfinite_ += other.nonfinite_;
    sum_ += other.sum_;
    largest_ = std::max(largest_, other.largest_);
    rows_.merge(other.rows_);
  }
  std::int64_t count() const { return count_; }
  std::int64_t nonfinite() const { return nonfinite_; }  // of them, left out of the sum
  double sum() const { return sum_; }
  double largest() const { return largest_; }
  Number mean() const {  // of the finite ones; empty: there are none
    if (count_ == nonfinite_) return std::nullopt;
    return sum_ / static_cast<double>(count_ - nonfinite_);
  }
  const LogHistogram& rows() const { return rows_; }

 private:
  double sum_ = 0, largest_ = 0;
  std::int64_t count_ = 0, nonfinite_ = 0;
  LogHistogram rows_;
};

}  // namespace quantmap
