// Hands out 64-byte aligned pieces of one worker's scratch, one after another; all are given back together
// when the Arena goes. Throws Error (failed) where the memory is too small: its size was planned wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quantmap {

class Arena {
 public:
  explicit Arena(std::vector<std::byte>& memory);
  std::byte* bytes(std::int64_t count);
  float* floats(std::int64_t count) { return reinterpret_cast<float*>(bytes(count * 4)); }

 private:
  std::byte* next_;
  const std::byte* end_;
};

}  // namespace quantmap
