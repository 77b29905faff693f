#include "core/random.hpp"

#include <cmath>
#include <numbers>

namespace quantmap {

void fill_gaussian(std::uint64_t seed, float* out, std::int64_t count) {
  SplitMix64 random(seed);
  for (std::int64_t i = 0; i < count; i += 2) {
    const double radius = std::sqrt(-2.0 * std::log(random.uniform()));
    const double angle = 2.0 * std::numbers::pi * random.uniform();
    out[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < count) out[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

}  // namespace quantmap
