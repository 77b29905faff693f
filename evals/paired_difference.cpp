#include "evals/paired_difference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/sum.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kMostWindows = 1'000'000'000;

std::vector<Cluster> with_tokens(std::span<const Cluster> windows) {
  std::vector<Cluster> kept;
  std::copy_if(windows.begin(), windows.end(), std::back_inserter(kept),
               [](const Cluster& window) { return window.count > 0; });
  return kept;
}

Number mean_of(std::span<const Cluster> windows) {
  Sum sum, count;
  for (const Cluster& window : windows) {
    sum.add(window.sum);
    count.add(window.count);
  }
  const double mean = sum.value() / count.value();
  return count.value() > 0 && std::isfinite(mean) ? Number(mean) : std::nullopt;
}

void judge(Difference& d) {
  if (!d.difference || !d.stderr_of_difference || !d.degrees) return;
  d.interval = t_interval(d.difference, d.stderr_of_difference, *d.degrees);
  if (*d.stderr_of_difference > 0)
    d.p = student_t_two_sided(*d.difference / *d.stderr_of_difference, *d.degrees);
  else
    d.p = *d.difference == 0 ? 1 : 0;
}

}  // namespace

Difference paired_difference(std::span<const Cluster> a, std::span<const Cluster> b) {
  if (a.size() != b.size())
    fail("paired difference", "",
         fmt::format("{} windows of one scheme, {} of the other", a.size(), b.size()));
  std::vector<Cluster> windows;
  for (std::size_t w = 0; w < a.size(); ++w) {
    if (a[w].count != b[w].count)
      fail("paired difference", "",
           fmt::format("window {} counts {} of one scheme, {} of the other", w, a[w].count, b[w].count));
    if (a[w].count > 0) windows.push_back({a[w].sum - b[w].sum, a[w].count});
  }
  Difference d;
  d.windows = static_cast<std::int64_t>(windows.size());
  d.difference = mean_of(windows);
  if (d.difference) d.stderr_of_difference = clustered_stderr(windows);
  if (d.windows > 1) d.degrees = static_cast<double>(d.windows - 1);
  judge(d);
  return d;
}

Difference unpaired_difference(std::span<const Cluster> a, std::span<const Cluster> b) {
  const std::vector<Cluster> left = with_tokens(a), right = with_tokens(b);
  Difference d;
  d.windows = static_cast<std::int64_t>(std::min(left.size(), right.size()));
  const Number mean_a = mean_of(left), mean_b = mean_of(right);
  if (mean_a && mean_b) d.difference = *mean_a - *mean_b;
  const Number error_a = clustered_stderr(left), error_b = clustered_stderr(right);
  if (d.difference && error_a && error_b) {
    const double variance_a = *error_a * *error_a, variance_b = *error_b * *error_b;
    const double variance = variance_a + variance_b;
    d.stderr_of_difference = std::sqrt(variance);
    const double squares = variance_a * variance_a / static_cast<double>(left.size() - 1) +
                           variance_b * variance_b / static_cast<double>(right.size() - 1);
    d.degrees = squares > 0 ? variance * variance / squares : static_cast<double>(d.windows - 1);
  }
  judge(d);
  return d;
}

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::undefined:
      return "undefined";
    case Verdict::equal:
      return "equal";
    case Verdict::lower:
      return "lower";
    case Verdict::higher:
      return "higher";
    case Verdict::not_distinguishable:
      return "not distinguishable";
  }
  fail("verdict", "", "unknown");
}

Verdict verdict_of(const Difference& d, const Number& p, double confidence) {
  if (!d.difference || !p) return Verdict::undefined;
  if (*d.difference == 0 && d.stderr_of_difference == 0.0) return Verdict::equal;
  if (!(*p < 1 - confidence)) return Verdict::not_distinguishable;
  return *d.difference < 0 ? Verdict::lower : Verdict::higher;
}

Number windows_to_settle(const Difference& d, double confidence) {
  if (!d.difference || !d.stderr_of_difference || *d.difference == 0 || d.windows < 2) return std::nullopt;
  const double size = std::abs(*d.difference);
  const double spread = *d.stderr_of_difference * std::sqrt(static_cast<double>(d.windows));
  const auto settled = [&](std::int64_t windows) {
    const auto n = static_cast<double>(windows);
    return student_t_quantile((1 + confidence) / 2, n - 1) * spread / std::sqrt(n) < size;
  };
  std::int64_t enough = d.windows;
  while (!settled(enough)) {
    if (enough >= kMostWindows) return std::nullopt;
    enough = std::min(2 * enough, kMostWindows);
  }
  // settled() is monotone: the quantile falls and the root grows with the number of windows.
  std::int64_t low = std::max(d.windows, enough / 2);
  while (low < enough) {
    const std::int64_t middle = low + (enough - low) / 2;
    if (settled(middle))
      enough = middle;
    else
      low = middle + 1;
  }
  return static_cast<double>(enough - d.windows);
}

}  // namespace quantmap
