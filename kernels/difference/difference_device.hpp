// The sums of RowDifference over the threads of a block, for .cu files.
#pragma once

#include <cmath>

#include "kernels/difference/difference.hpp"
#include "kernels/math/reduce.hpp"

namespace quantmap::QUANTMAP_DEVICE {

__device__ inline void add_difference(float x, float y, RowDifference& row) {
  if (!is_finite(x) || !is_finite(y)) {
    ++row.nonfinite;
    return;
  }
  const double a = x, b = y, e = b - a;
  row.error2 += e * e;
  row.reference2 += a * a;
  row.value2 += b * b;
  row.dot += a * b;
  row.max_error = Larger{}(row.max_error, fabsf(y - x));
  row.amax = Larger{}(row.amax, fabsf(x));
}

// All threads of the block call it, once in a kernel.
__device__ inline RowDifference block_difference(const RowDifference& own) {
  RowDifference all;
  all.error2 = block_reduce<struct Error2>(own.error2, Add{});
  all.reference2 = block_reduce<struct Reference2>(own.reference2, Add{});
  all.value2 = block_reduce<struct Value2>(own.value2, Add{});
  all.dot = block_reduce<struct Dot>(own.dot, Add{});
  all.max_error = block_reduce<struct MaxError>(own.max_error, Larger{});
  all.amax = block_reduce<struct Amax>(own.amax, Larger{});
  all.nonfinite = block_reduce<struct Nonfinite>(own.nonfinite, Add{});
  return all;
}

}  // namespace quantmap::QUANTMAP_DEVICE
