// Tables of levels: see row_kernels.hpp.
#include <bit>

#include "core/simd.hpp"
#include "formats/element.hpp"
#include "formats/extent.hpp"
#include "formats/row_kernels.hpp"

namespace quantmap {
namespace {

QUANTMAP_INLINE std::uint32_t block_amax(const float* x, std::int64_t n) {
  std::int32_t amax = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t magnitude = std::bit_cast<std::int32_t>(x[i]) & 0x7FFFFFFF;
    amax = magnitude > amax ? magnitude : amax;
  }
  return static_cast<std::uint32_t>(amax);
}

}  // namespace

QUANTMAP_SIMD void lookup_absmax(std::int64_t block, const float* x, std::int64_t n, float* absmax) {
  for (std::int64_t begin = 0, k = 0; begin < n; begin += block, ++k) {
    const std::uint32_t amax = block_amax(x + begin, begin + block <= n ? block : n - begin);
    absmax[k] = std::bit_cast<float>(amax >= 0x7F800000U ? 0x7FC00000U : amax);
  }
}

QUANTMAP_SIMD void round_lookup(Element element, std::int64_t block, const float* x, std::int64_t n,
                                const float* decoded_absmax, float* out, QuantCounts& counts) {
  with_codebook(element, [&](auto codebook) QUANTMAP_INLINE_LAMBDA {
    for (std::int64_t begin = 0, k = 0; begin < n; begin += block, ++k) {
      const std::int64_t count = begin + block <= n ? block : n - begin;
      const std::uint32_t amax = block_amax(x + begin, count);
      const bool finite = amax < 0x7F800000U;
      if (!finite) counts.nonfinite += count_nonfinite(x + begin, count);
      counts.zero_groups += amax == 0 ? 1 : 0;
      const float own = std::bit_cast<float>(finite ? amax : 0x7FC00000U);
      const float inverse = 1.0F / own;
      const float factor = !finite || !decoded_absmax ? own : decoded_absmax[k];
      QUANTMAP_ELEMENTWISE
      for (std::int64_t i = begin; i < begin + count; ++i)
        out[i] = decltype(codebook)::round(lookup_normalized(x[i], inverse)) * factor;
    }
  });
}

}  // namespace quantmap
