#include "measure/moments.hpp"

#include <cmath>

namespace quantmap {

void Moments::merge(const RowMoments& b) {
  if (b.count == 0) return;
  if (sums_.count == 0) {
    sums_ = b;
    return;
  }
  const RowMoments a = sums_;
  const auto na = static_cast<double>(a.count), nb = static_cast<double>(b.count), n = na + nb;
  const double gap = b.mean - a.mean, step = gap / n;
  sums_.count = a.count + b.count;
  sums_.mean = a.mean + step * nb;
  sums_.m2 = a.m2 + b.m2 + gap * step * na * nb;
  sums_.m3 = a.m3 + b.m3 + gap * step * step * na * nb * (na - nb) + 3 * step * (na * b.m2 - nb * a.m2);
  sums_.m4 = a.m4 + b.m4 + gap * step * step * step * na * nb * (na * na - na * nb + nb * nb) +
             6 * step * step * (na * na * b.m2 + nb * nb * a.m2) + 4 * step * (na * b.m3 - nb * a.m3);
}

Number Moments::kurtosis() const {
  if (sums_.count == 0 || sums_.m2 == 0) return std::nullopt;
  const double value = static_cast<double>(sums_.count) * sums_.m4 / (sums_.m2 * sums_.m2);
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace quantmap
