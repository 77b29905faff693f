// The largest numbers that a configuration may name: far above any model, and small enough that products of
// two fit in 64 bits and nothing is allocated for a number that is a mistake.
#pragma once

#include <cstdint>

namespace quantmap {

inline constexpr std::int64_t kMaxWidth = std::int64_t{1} << 26;  // hidden and intermediate size
inline constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 28;
inline constexpr std::int64_t kMaxLayers = 10'000;
inline constexpr std::int64_t kMaxHeads = 65'536;
inline constexpr std::int64_t kMaxHeadDim = 65'536;
inline constexpr std::int64_t kMaxPositions = std::int64_t{1} << 40;

}  // namespace quantmap
