// The vector versions of row_difference(): every one sums value i in lane i mod 8 and the lanes in their
// order, and fuses only products that doubles hold exactly, so that all give the same bits.
#pragma once

#include <span>

#include "kernels/difference/difference.hpp"

namespace quantmap {

inline constexpr int kDifferenceLanes = 8;

struct DifferencePath {
  const char* name;
  bool (*runs_here)();
  // Finite values only: `nonfinite` is left alone. `next` as row_difference() takes it.
  void (*add)(const float* x, const float* y, std::int64_t count, const float* next, RowDifference& row);
};
// The best first; the last is plain code and runs everywhere.
std::span<const DifferencePath> difference_paths();

}  // namespace quantmap
