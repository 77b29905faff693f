// Mergeable error statistics of a tensor against its reference (formats.md, section 11): what is added row by
// row, window after window, and what is read off at the end. Adding windows in order gives the same bits
// however they were grouped into passes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/number.hpp"

namespace quantmap {

// Counts of positive values by size, 50 bins a decade from 1e-8 to 1e2; zeros and what is larger apart, what
// is smaller in the first bin. A quantile is the middle of its bin (geometric): within 2.4 % of the exact
// one.
class LogHistogram {
 public:
  static constexpr int kPerDecade = 50, kDecades = 10, kBins = kPerDecade * kDecades;
  void add(double value);
  void merge(const LogHistogram& other);
  // The smallest value that at least a share `f` of the values do not exceed; nullopt: empty, or it lies
  // among values that are not numbers (they count as largest).
  Number quantile(double f) const;
  std::uint64_t count() const;
  bool operator==(const LogHistogram&) const = default;

 private:
  friend class ErrorSums;
  std::array<std::uint32_t, kBins + 3> bins_{};  // [0]: zero, [1 … kBins], [kBins+1]: larger, [kBins+2]: NaN
};

class ErrorSums {
 public:
  // One row: sums over its finite values, and its relative error sqrt(error2 / reference2) into the
  // histogram: 0 if both are 0; NaN if only the reference is, and for a row that holds any non-finite value.
  void add_row(double error2, double reference2, double value2, double dot, float max_error, float amax,
               std::int64_t nonfinite, std::int64_t count);
  void merge(const ErrorSums& other);

  std::int64_t count() const { return count_; }          // values seen
  std::int64_t nonfinite() const { return nonfinite_; }  // of them, left out of the sums
  double error2() const { return error2_; }              // sum (y - x)^2
  double reference2() const { return reference2_; }      // sum x^2
  double max_error() const { return max_error_; }
  double amax() const { return amax_; }
  // ||y - x|| / ||x|| of the finite values; 0 for a zero reference without error; empty for one with error
  // (undefined) and where no value is finite.
  Number relative_error() const;
  Number sqnr_db() const;  // -20 log10(relative error); nullopt where that is 0 or undefined
  Number cosine() const;   // nullopt if either norm is 0
  const LogHistogram& rows() const { return rows_; }

  std::string pack() const;  // for the store; native byte order, this machine's database only
  static ErrorSums unpack(std::string_view packed, std::size_t& at);
  bool operator==(const ErrorSums&) const = default;

 private:
  double error2_ = 0, reference2_ = 0, value2_ = 0, dot_ = 0;
  double max_error_ = 0, amax_ = 0;
  std::int64_t nonfinite_ = 0, count_ = 0;
  LogHistogram rows_;
};

}  // namespace quantmap
