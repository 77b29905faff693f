// RMSNorm (Zhang and Sennrich 2019, arXiv 1910.07467): out = x / sqrt(mean(x^2) + eps) * weight, row by row.
// x, out: [rows][cols] with their own row strides (in values); weight: [cols]. The mean is taken in double,
// the rest in FP32. x and out may be the same array.
#pragma once

#include <cstdint>

namespace quantmap {

void rms_norm(const float* x, std::int64_t x_stride, const float* weight, float eps, std::int64_t rows,
              std::int64_t cols, float* out, std::int64_t out_stride);
void rms_norm_ref(const float* x, std::int64_t x_stride, const float* weight, float eps, std::int64_t rows,
                  std::int64_t cols, float* out, std::int64_t out_stride);

}  // namespace quantmap
