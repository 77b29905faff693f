#include "measure/site_sums.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace quantmap {

double median_abs(const float* x, std::int64_t count) {
  std::vector<float> sizes(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) sizes[static_cast<std::size_t>(i)] = std::abs(x[i]);
  const auto middle = sizes.begin() + count / 2;
  std::nth_element(sizes.begin(), middle, sizes.end());
  if (count % 2 == 1) return *middle;
  const float below = *std::max_element(sizes.begin(), middle);
  return (double{below} + double{*middle}) / 2;
}

void SiteSums::add_row(const RowDifference& d, std::int64_t count, bool massive) {
  errors_.add_row(d.error2, d.reference2, d.value2, d.dot, d.max_error, d.amax, d.nonfinite, count);
  if (massive) {
    ++massive_rows_;
    return;
  }
  rest_error2_ += d.error2;
  rest_reference2_ += d.reference2;
  rest_finite_ += count - d.nonfinite;
}

void SiteSums::merge(const SiteSums& other) {
  errors_.merge(other.errors_);
  reference_.merge(other.reference_);
  rest_error2_ += other.rest_error2_;
  rest_reference2_ += other.rest_reference2_;
  rest_finite_ += other.rest_finite_;
  massive_rows_ += other.massive_rows_;
  saturated_ += other.saturated_;
  if (other.stream2_) add_stream(*other.stream2_);
}

Number SiteSums::rest_error() const {
  if (rest_finite_ == 0) return std::nullopt;
  if (rest_error2_ == 0) return 0.0;
  if (rest_reference2_ == 0) return std::nullopt;
  return std::sqrt(rest_error2_ / rest_reference2_);
}

Number SiteSums::residual_error() const {
  if (!stream2_ || (errors_.count() > 0 && errors_.nonfinite() == errors_.count())) return std::nullopt;
  if (errors_.error2() == 0) return 0.0;
  if (*stream2_ == 0) return std::nullopt;
  return std::sqrt(errors_.error2() / *stream2_);
}

}  // namespace quantmap
