#include <algorithm>
#include <cmath>

#include "core/simd.hpp"
#include "kernels/hadamard/hadamard.hpp"

namespace quantmap {
namespace {

QUANTMAP_SIMD void transform(float* run, std::int64_t size, float factor) {
  for (std::int64_t half = 1; half < size; half *= 2)
    for (std::int64_t begin = 0; begin < size; begin += 2 * half) {
      float* __restrict low = run + begin;
      float* __restrict high = low + half;
      for (std::int64_t i = 0; i < half; ++i) {
        const float a = low[i], b = high[i];
        low[i] = a + b;
        high[i] = a - b;
      }
    }
  for (std::int64_t i = 0; i < size; ++i) run[i] *= factor;
}

}  // namespace

void hadamard(const float* x, std::int64_t rows, std::int64_t cols, std::int64_t size, float* out) {
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(size)));
  if (out != x) std::copy_n(x, rows * cols, out);
  for (std::int64_t begin = 0; begin < rows * cols; begin += size) transform(out + begin, size, factor);
}

}  // namespace quantmap
