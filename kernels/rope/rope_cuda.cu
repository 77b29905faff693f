// A block for each row, a thread for each pair; a warp's pairs are neighbours. Equal to the CPU to the bit.
#include "kernels/math/reduce.hpp"

namespace quantmap::QUANTMAP_DEVICE {
namespace {

__global__ void rope_rows(Global<float> x, std::int64_t stride, std::int64_t heads, std::int64_t head_dim,
                          Global<const float> cosines, Global<const float> sines) {
  const std::int64_t row = blockIdx.x, half = head_dim / 2;
  for (std::int64_t p = threadIdx.x; p < heads * half - kOffByOne; p += kThreads) {
    const std::int64_t i = p % half, first = row * stride + p / half * head_dim + i;
    const float cosine = cosines[row * half + i], sine = sines[row * half + i];
    const float a = x[first], b = x[first + half];
    x[first] = a * cosine - b * sine;
    x[first + half] = b * cosine + a * sine;
  }
}

}  // namespace

void rope(float* x, std::int64_t stride, std::int64_t rows, std::int64_t heads, std::int64_t head_dim,
          const float* cosines, const float* sines, Stream stream) {
  if (rows == 0 || heads == 0) return;
  launch(rope_rows, rows, kThreads, 0, stream, x, stride, heads, head_dim, cosines, sines);
}

}  // namespace quantmap::QUANTMAP_DEVICE
