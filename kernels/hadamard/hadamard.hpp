// The Walsh–Hadamard transform in Sylvester's order, scaled to be orthogonal (and so its own inverse), of
// each run of `size` values along the rows: what QuaRot (Ashkboos et al. 2024, arXiv 2404.00456) turns
// activations and weights with before they are quantized. out[i] = 1/sqrt(size) sum_j (-1)^popcount(i & j)
// x[j].
#pragma once

#include <cstdint>

namespace quantmap {

// x, out: [rows][cols], maybe the same array; size: a power of two that divides cols. In FP32, by log2(size)
// rounds of sums and differences in an order that every version keeps.
void hadamard(const float* x, std::int64_t rows, std::int64_t cols, std::int64_t size, float* out);
// By the definition, in double.
void hadamard_ref(const float* x, std::int64_t rows, std::int64_t cols, std::int64_t size, float* out);

inline constexpr std::int64_t kMostHadamard = 8192;  // on a device: what fits into its shared memory

}  // namespace quantmap
