#include "kernels/math/exp.hpp"
#include "kernels/swiglu/swiglu.hpp"

namespace quantmap {

QUANTMAP_SIMD void swiglu(const float* gate, std::int64_t gate_stride, const float* up,
                          std::int64_t up_stride, std::int64_t rows, std::int64_t cols, float* out,
                          std::int64_t out_stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* g = gate + r * gate_stride;
    const float* u = up + r * up_stride;
    float* to = out + r * out_stride;
    for (std::int64_t c = 0; c < cols; ++c) to[c] = g[c] / (1.0f + exp_f32(-g[c])) * u[c];
  }
}

}  // namespace quantmap
