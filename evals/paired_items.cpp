#include "evals/paired_items.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>

#include "core/error.hpp"

namespace quantmap {

Flips flips(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  if (a.size() != b.size())
    fail("paired items", "", fmt::format("{} items of one scheme, {} of the other", a.size(), b.size()));
  Flips f;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != 0)
      ++(b[i] != 0 ? f.both : f.only_a);
    else
      ++(b[i] != 0 ? f.only_b : f.neither);
  }
  return f;
}

double mcnemar(std::int64_t only_a, std::int64_t only_b) {
  const auto flipped = static_cast<double>(only_a + only_b);
  if (only_a == only_b) return 1;
  const boost::math::binomial_distribution<double> coin(flipped, 0.5);
  return std::min(1.0, 2 * boost::math::cdf(coin, static_cast<double>(std::min(only_a, only_b))));
}

AccuracyDifference accuracy_difference(const Flips& f) {
  AccuracyDifference d;
  const auto n = static_cast<double>(f.items());
  if (n == 0) return d;
  d.difference = static_cast<double>(f.only_a - f.only_b) / n;
  d.p = mcnemar(f.only_a, f.only_b);
  if (n < 2) return d;
  const double squares = static_cast<double>(f.flipped()) - n * *d.difference * *d.difference;
  d.stderr_of_difference = std::sqrt(std::max(0.0, squares) / (n - 1) / n);
  d.interval = t_interval(d.difference, d.stderr_of_difference, n - 1);
  return d;
}

}  // namespace quantmap
