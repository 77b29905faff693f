// Arrays to and from BF16, vectorized (bf16.hpp: nearest, ties to even; NaN stays NaN).
#pragma once

#include <cstdint>

namespace quantmap {

void array_to_bf16(const float* x, std::int64_t count, std::uint16_t* out);
void array_from_bf16(const std::uint16_t* x, std::int64_t count, float* out);
// Rounded, still FP32. out may be x.
void round_array_to_bf16(const float* x, std::int64_t count, float* out);

}  // namespace quantmap
