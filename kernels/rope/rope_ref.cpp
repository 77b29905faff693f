#include <complex>

#include "kernels/rope/rope.hpp"

namespace quantmap {

void rope_ref(float* x, std::int64_t stride, std::int64_t rows, std::int64_t heads, std::int64_t head_dim,
              const float* cosines, const float* sines) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < half; ++i) {
        float* pair = x + r * stride + h * head_dim + i;
        const std::complex<double> turned = std::complex<double>(pair[0], pair[half]) *
                                            std::complex<double>(cosines[r * half + i], sines[r * half + i]);
        pair[0] = static_cast<float>(turned.real());
        pair[half] = static_cast<float>(turned.imag());
      }
}

}  // namespace quantmap
