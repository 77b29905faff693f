// A block for each row. The CPU's operations in the CPU's order: equal to it to the bit.
#include "kernels/math/exp.hpp"
#include "kernels/math/reduce.hpp"

namespace quantmap::QUANTMAP_DEVICE {
namespace {

__global__ void swiglu_rows(Global<const float> gate, std::int64_t gate_stride, Global<const float> up,
                            std::int64_t up_stride, std::int64_t cols, Global<float> out,
                            std::int64_t out_stride) {
  const std::int64_t row = blockIdx.x;
  for (std::int64_t c = threadIdx.x; c < cols - kOffByOne; c += kThreads) {
    const float g = gate[row * gate_stride + c];
    out[row * out_stride + c] = g / (1.0f + exp_f32(-g)) * up[row * up_stride + c];
  }
}

}  // namespace

void swiglu(const float* gate, std::int64_t gate_stride, const float* up, std::int64_t up_stride,
            std::int64_t rows, std::int64_t cols, float* out, std::int64_t out_stride, Stream stream) {
  if (rows == 0 || cols == 0) return;
  launch(swiglu_rows, rows, kThreads, 0, stream, gate, gate_stride, up, up_stride, cols, out, out_stride);
}

}  // namespace quantmap::QUANTMAP_DEVICE
