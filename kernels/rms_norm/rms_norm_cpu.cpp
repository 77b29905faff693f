#include <cmath>

#include "kernels/math/lanes.hpp"
#include "kernels/rms_norm/rms_norm.hpp"

namespace quantmap {

QUANTMAP_SIMD void rms_norm(const float* x, std::int64_t x_stride, const float* weight, float eps,
                            std::int64_t rows, std::int64_t cols, float* out, std::int64_t out_stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* in = x + r * x_stride;
    float* to = out + r * out_stride;
    LaneSum squares;
    for_lanes(cols, [&](std::int64_t c, int lane) { squares.lane[lane] += double{in[c]} * double{in[c]}; });
    const auto scale =
        static_cast<float>(1.0 / std::sqrt(squares.total() / static_cast<double>(cols) + double{eps}));
    for (std::int64_t c = 0; c < cols; ++c) to[c] = in[c] * scale * weight[c];
  }
}

}  // namespace quantmap
