#include "core/simd.hpp"
#include "kernels/rope/rope.hpp"

namespace quantmap {

QUANTMAP_SIMD void rope(float* x, std::int64_t stride, std::int64_t rows, std::int64_t heads,
                        std::int64_t head_dim, const float* cosines, const float* sines) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* cosine = cosines + r * half;
    const float* sine = sines + r * half;
    for (std::int64_t h = 0; h < heads; ++h) {
      float* __restrict first = x + r * stride + h * head_dim;
      float* __restrict second = first + half;
      for (std::int64_t i = 0; i < half; ++i) {
        const float a = first[i], b = second[i];
        first[i] = a * cosine[i] - b * sine[i];
        second[i] = b * cosine[i] + a * sine[i];
      }
    }
  }
}

}  // namespace quantmap
