#include "measure/error_sums.hpp"

#include <algorithm>
#include <cmath>

#include "core/bytes.hpp"

namespace quantmap {
namespace {

constexpr double kSmallest = 1e-8;

}  // namespace

void LogHistogram::add(double value) {
  if (std::isnan(value)) {
    ++bins_[kBins + 2];
  } else if (value <= 0) {
    ++bins_[0];
  } else {
    const double at = std::floor(std::log10(value / kSmallest) * kPerDecade);
    const int bin = static_cast<int>(std::clamp(at, 0.0, static_cast<double>(kBins)));
    ++bins_[static_cast<std::size_t>(bin) + 1];
  }
}

void LogHistogram::merge(const LogHistogram& other) {
  for (std::size_t i = 0; i < bins_.size(); ++i) bins_[i] += other.bins_[i];
}

std::uint64_t LogHistogram::count() const {
  std::uint64_t total = 0;
  for (const std::uint32_t bin : bins_) total += bin;
  return total;
}

Number LogHistogram::quantile(double f) const {
  const std::uint64_t total = count();
  if (total == 0) return std::nullopt;
  const double wanted = std::max(1.0, std::ceil(f * static_cast<double>(total)));
  double below = 0;
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    below += bins_[i];
    if (below < wanted) continue;
    if (i == 0) return 0.0;
    if (i == kBins + 2) return std::nullopt;
    return kSmallest * std::pow(10.0, (static_cast<double>(i) - 0.5) / kPerDecade);
  }
  return std::nullopt;
}

void ErrorSums::add_row(double error2, double reference2, double value2, double dot, float max_error,
                        float amax, std::int64_t nonfinite, std::int64_t count) {
  error2_ += error2;
  reference2_ += reference2;
  value2_ += value2;
  dot_ += dot;
  max_error_ = std::max(max_error_, double{max_error});
  amax_ = std::max(amax_, double{amax});
  nonfinite_ += nonfinite;
  count_ += count;
  rows_.add(nonfinite > 0 ? NAN : error2 == 0 ? 0.0 : reference2 > 0 ? std::sqrt(error2 / reference2) : NAN);
}

void ErrorSums::merge(const ErrorSums& other) {
  error2_ += other.error2_;
  reference2_ += other.reference2_;
  value2_ += other.value2_;
  dot_ += other.dot_;
  max_error_ = std::max(max_error_, other.max_error_);
  amax_ = std::max(amax_, other.amax_);
  nonfinite_ += other.nonfinite_;
  count_ += other.count_;
  rows_.merge(other.rows_);
}

Number ErrorSums::relative_error() const {
  if (count_ > 0 && nonfinite_ == count_) return std::nullopt;  // nothing finite is left to compare
  if (error2_ == 0) return 0.0;
  if (reference2_ == 0) return std::nullopt;
  return std::sqrt(error2_ / reference2_);
}

Number ErrorSums::sqnr_db() const {
  const auto relative = relative_error();
  if (!relative || *relative == 0) return std::nullopt;
  return -20 * std::log10(*relative);
}

Number ErrorSums::cosine() const {
  if (reference2_ == 0 || value2_ == 0) return std::nullopt;
  return dot_ / (std::sqrt(reference2_) * std::sqrt(value2_));
}

std::string ErrorSums::pack() const {
  std::string packed;
  put_bytes(packed, error2_);
  put_bytes(packed, reference2_);
  put_bytes(packed, value2_);
  put_bytes(packed, dot_);
  put_bytes(packed, max_error_);
  put_bytes(packed, amax_);
  put_bytes(packed, nonfinite_);
  put_bytes(packed, count_);
  put_bytes(packed, rows_.bins_);
  return packed;
}

ErrorSums ErrorSums::unpack(std::string_view packed, std::size_t& at) {
  ErrorSums sums;
  const auto take = [&](auto& value) { take_bytes(packed, at, value, "stored error sums are cut short"); };
  take(sums.error2_);
  take(sums.reference2_);
  take(sums.value2_);
  take(sums.dot_);
  take(sums.max_error_);
  take(sums.amax_);
  take(sums.nonfinite_);
  take(sums.count_);
  take(sums.rows_.bins_);
  return sums;
}

}  // namespace quantmap
