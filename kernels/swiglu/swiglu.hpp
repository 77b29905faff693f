// SwiGLU (Shazeer 2020, arXiv 2002.05202): out = silu(gate) * up, silu(g) = g / (1 + exp(-g)), in FP32.
// All [rows][cols] with their own row strides; out may be gate.
#pragma once

#include <cstdint>

namespace quantmap {

void swiglu(const float* gate, std::int64_t gate_stride, const float* up, std::int64_t up_stride,
            std::int64_t rows, std::int64_t cols, float* out, std::int64_t out_stride);
void swiglu_ref(const float* gate, std::int64_t gate_stride, const float* up, std::int64_t up_stride,
                std::int64_t rows, std::int64_t cols, float* out, std::int64_t out_stride);

}  // namespace quantmap
