#include <bit>
#include <cmath>
#include <cstring>

#include "core/simd.hpp"
#include "kernels/difference/difference.hpp"

namespace quantmap {

namespace {

// Eight values at a time, written with vectors: a loop over floats that sums doubles becomes shuffles.
constexpr int kStep = 8;
using Floats = float __attribute__((vector_size(kStep * sizeof(float))));
using Words = std::int32_t __attribute__((vector_size(kStep * sizeof(float))));
using Doubles = double __attribute__((vector_size(kStep * sizeof(double))));
using HalfDoubles = double __attribute__((vector_size(kStep / 2 * sizeof(double))));

template <class Vector, class From>
QUANTMAP_INLINE void load(Vector& to, const From* from) {
  std::memcpy(&to, from, sizeof(to));
}

QUANTMAP_SIMD void add_row(const float* x, const float* y, std::int64_t count, const float* next,
                           RowDifference& row) {
  HalfDoubles error2[2]{}, reference2[2]{}, value2[2]{}, dot[2]{};
  Words most_error{}, most{};  // bits of magnitudes, which compare as the floats do
  float last_x[kStep] = {}, last_y[kStep] = {};
  for (std::int64_t i = 0; i < count; i += kStep) {
    if (next) __builtin_prefetch(next + i, 0, 2);
    const float* from = x + i;
    const float* to = y + i;
    if (i + kStep > count) {
      for (std::int64_t j = i; j < count; ++j) {
        last_x[j - i] = x[j];
        last_y[j - i] = y[j];
      }
      from = last_x;
      to = last_y;
    }
    Floats a, b;
    load(a, from);
    load(b, to);
    const Doubles all_a = __builtin_convertvector(a, Doubles), all_b = __builtin_convertvector(b, Doubles);
    const HalfDoubles a_lo = __builtin_shufflevector(all_a, all_a, 0, 1, 2, 3),
                      a_hi = __builtin_shufflevector(all_a, all_a, 4, 5, 6, 7),
                      b_lo = __builtin_shufflevector(all_b, all_b, 0, 1, 2, 3),
                      b_hi = __builtin_shufflevector(all_b, all_b, 4, 5, 6, 7);
    error2[0] += (b_lo - a_lo) * (b_lo - a_lo);
    error2[1] += (b_hi - a_hi) * (b_hi - a_hi);
    reference2[0] += a_lo * a_lo;
    reference2[1] += a_hi * a_hi;
    value2[0] += b_lo * b_lo;
    value2[1] += b_hi * b_hi;
    dot[0] += a_lo * b_lo;
    dot[1] += a_hi * b_hi;
    const Words size = reinterpret_cast<Words>(a) & 0x7FFFFFFF;
    const Words gap = reinterpret_cast<Words>(b - a) & 0x7FFFFFFF;
    most = size > most ? size : most;
    most_error = gap > most_error ? gap : most_error;
  }
  for (int half = 0; half < 2; ++half)
    for (int lane = 0; lane < kStep / 2; ++lane) {
      row.error2 += error2[half][lane];
      row.reference2 += reference2[half][lane];
      row.value2 += value2[half][lane];
      row.dot += dot[half][lane];
    }
  std::int32_t error_bits = 0, bits = 0;
  for (int lane = 0; lane < kStep; ++lane) {
    error_bits = most_error[lane] > error_bits ? most_error[lane] : error_bits;
    bits = most[lane] > bits ? most[lane] : bits;
  }
  row.max_error = std::bit_cast<float>(error_bits);
  row.amax = std::bit_cast<float>(bits);
}

}  // namespace

// No sum of finite floats' squares overflows a double, so a sum that is not finite tells of a value that is
// not. Such rows are rare and take the plain path.
RowDifference row_difference(const float* x, const float* y, std::int64_t count, const float* next) {
  RowDifference row;
  add_row(x, y, count, next, row);
  if (!std::isfinite(row.reference2 + row.value2)) return row_difference_ref(x, y, count);
  return row;
}

RowPeak row_peak(const float* x, std::int64_t count) {
  RowPeak peak;
  for (std::int64_t i = 0; i < count; ++i)
    if (std::abs(x[i]) > std::abs(peak.value)) peak = {i, x[i]};
  return peak;
}

}  // namespace quantmap
