// bitsandbytes' signed dynamic map of 8 bits, for the block maxima of nested (doubly quantized) NF4 and FP4
// (formats.md, section 5): 0, 1, and +-10^(i-6) times the midpoints of 2^i equal parts of [0.1, 1], i = 0..6;
// sorted. The parts are torch.linspace's: from both ends, one rounding for start + step * k.
#pragma once

#include <array>
#include <cstdint>

namespace quantmap {

// Maxima that share a maximum of their own.
inline constexpr std::int64_t kNestedBlock = 256;

const std::array<float, 256>& dynamic_map();
std::uint32_t dynamic_encode(float normalized);  // nearest entry, ties to the lower

}  // namespace quantmap
