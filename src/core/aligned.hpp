// Alignment of scratch that is handed out in pieces.
#pragma once

#include <cstdint>

namespace quantmap {

inline constexpr std::int64_t kAlignment = 64;  // bytes: a cache line, and the widest vector

// The least multiple of kAlignment that holds `bytes`.
constexpr std::int64_t aligned_bytes(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace quantmap
