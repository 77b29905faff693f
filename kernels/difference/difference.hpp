// How far a tensor is from its reference, in one pass over a row: the sums behind relative error, SQNR,
// cosine and maximum error (formats.md, section 11). FP32 inputs, every sum in double.
#pragma once

#include <cstdint>

namespace quantmap {

struct RowDifference {
  double error2 = 0;           // sum (y - x)^2
  double reference2 = 0;       // sum x^2
  double value2 = 0;           // sum y^2
  double dot = 0;              // sum x y
  float max_error = 0;         // max |y - x|
  float amax = 0;              // max |x|
  std::int64_t nonfinite = 0;  // values of y that are NaN or Inf; left out of the sums, as is their x
  bool operator==(const RowDifference&) const = default;
};

// x: reference, y: what became of it; [count]. `next`: [count] values that will be read after these, fetched
// into the cache meanwhile; null: none.
RowDifference row_difference(const float* x, const float* y, std::int64_t count, const float* next = nullptr);
RowDifference row_difference_ref(const float* x, const float* y, std::int64_t count);

// The first position of the largest |x| of a row, and that value with its sign. NaN is skipped.
struct RowPeak {
  std::int64_t index = 0;
  float value = 0;
};
RowPeak row_peak(const float* x, std::int64_t count);

}  // namespace quantmap
