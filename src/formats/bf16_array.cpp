#include "formats/bf16_array.hpp"

#include "core/simd.hpp"
#include "formats/bf16.hpp"

namespace quantmap {

QUANTMAP_SIMD void array_to_bf16(const float* x, std::int64_t count, std::uint16_t* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = bf16_from_float(x[i]);
}

QUANTMAP_SIMD void array_from_bf16(const std::uint16_t* x, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = float_from_bf16(x[i]);
}

QUANTMAP_SIMD void round_array_to_bf16(const float* x, std::int64_t count, float* out) {
  QUANTMAP_ELEMENTWISE
  for (std::int64_t i = 0; i < count; ++i) out[i] = round_to_bf16(x[i]);
}

}  // namespace quantmap
