// Sums in double that vectorize: kLanes independent partial sums over fixed positions, added up in a fixed
// order at the end. The result does not depend on the vector width of the machine.
#pragma once

#include <cstdint>

#include "core/simd.hpp"

namespace quantmap {

inline constexpr int kLanes = 16;

struct LaneSum {
  double lane[kLanes] = {};
  QUANTMAP_INLINE double total() const {
    double sum = 0;
    for (const double value : lane) sum += value;
    return sum;
  }
};

// Calls body(i, lane) for i in [0, count), lane = i mod kLanes, sixteen at a time.
template <typename Body>
QUANTMAP_INLINE void for_lanes(std::int64_t count, Body&& body) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) body(i + lane, lane);
  for (int lane = 0; i < count; ++i, ++lane) body(i, lane);
}

}  // namespace quantmap
