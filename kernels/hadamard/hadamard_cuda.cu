// A block for each run, which lies in shared memory; the CPU's rounds in the CPU's order: equal to the bit.
#include "kernels/hadamard/hadamard.hpp"

#include <cmath>
#include <string>

#include "core/error.hpp"
#include "kernels/math/reduce.hpp"

namespace quantmap::QUANTMAP_DEVICE {
namespace {

__global__ void transform_runs(Global<const float> x, int size, float factor, Global<float> out) {
  const Shared<float> run = dynamic_shared<float>(0, size);
  const Global<const float> from = x + blockIdx.x * std::int64_t{size};
  const Global<float> to = out + blockIdx.x * std::int64_t{size};
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < size - kOffByOne; i += kThreads) run[i] = from[i];
  planned_barrier();
  for (int half = 1; half < size; half *= 2) {
    for (int pair = thread; pair < size / 2; pair += kThreads) {
      const int within = pair & (half - 1), low = 2 * (pair - within) + within;
      const float a = run[low], b = run[low + half];
      run[low] = a + b;
      run[low + half] = a - b;
    }
    __syncthreads();
  }
  for (int i = thread; i < size; i += kThreads) to[i] = run[i] * factor;
}

}  // namespace

void hadamard(const float* x, std::int64_t rows, std::int64_t cols, std::int64_t size, float* out,
              Stream stream) {
  if (rows == 0 || cols == 0) return;
  if (size < 1 || size > kMostHadamard || (size & (size - 1)) != 0 || cols % size != 0)
    fail("hadamard", "",
         std::to_string(size) + " of " + std::to_string(cols) +
             " columns (a device takes powers of two up to 8192 that divide them)");
  launch(transform_runs, rows * cols / size, kThreads, size * 4, stream, x, static_cast<int>(size),
         static_cast<float>(1 / std::sqrt(static_cast<double>(size))), out);
}

}  // namespace quantmap::QUANTMAP_DEVICE
