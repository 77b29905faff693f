// What the error tables keep for one site, scope and kind of one scheme: mergeable, added row by row and
// window after window, so that the same bits come out however windows were grouped into passes.
#pragma once

#include <cstdint>
#include <optional>

#include "core/number.hpp"
#include "kernels/difference/difference.hpp"
#include "measure/error_sums.hpp"
#include "measure/moments.hpp"

namespace quantmap {

// A massive activation (Sun et al., arXiv 2402.17762; formats.md, section 11, D23): |value| above the first,
// and at least the second times the exact median |h| of its tensor in its window.
inline constexpr float kMassiveValue = 100, kMassiveRatio = 1000;

// Exact median of |x|; of an even count the mean of the two middle values.
double median_abs(const float* x, std::int64_t count);

class SiteSums {
 public:
  // massive: the row of the reference holds a massive activation; it is left out of rest_error().
  void add_row(const RowDifference& row, std::int64_t count, bool massive);
  void add_reference(const Moments& reference) { reference_.merge(reference); }
  void add_saturated(std::int64_t count) { saturated_ += count; }
  // Sum of squares of the reference's residual stream that the site is added to.
  void add_stream(double stream2) { stream2_ = stream2_.value_or(0) + stream2; }
  void forget_stream() { stream2_.reset(); }
  void merge(const SiteSums& other);

  const ErrorSums& errors() const { return errors_; }
  std::int64_t saturated() const { return saturated_; }
  std::int64_t massive_rows() const { return massive_rows_; }
  Number kurtosis() const { return reference_.kurtosis(); }
  Number rest_error() const;      // relative error of the rows without massive activations; empty: undefined
  Number residual_error() const;  // ||y - x|| / ||stream||; empty: no stream is known, or it is zero

 private:
  ErrorSums errors_;
  Moments reference_;
  double rest_error2_ = 0, rest_reference2_ = 0;
  std::int64_t rest_finite_ = 0;
  std::int64_t massive_rows_ = 0, saturated_ = 0;
  std::optional<double> stream2_;
};

}  // namespace quantmap
