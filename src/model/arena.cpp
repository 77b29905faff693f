#include "model/arena.hpp"

#include "core/aligned.hpp"
#include "core/error.hpp"

namespace quantmap {

Arena::Arena(std::vector<std::byte>& memory) : next_(memory.data()), end_(memory.data() + memory.size()) {
  const auto misaligned = reinterpret_cast<std::uintptr_t>(next_) % kAlignment;
  if (misaligned) next_ += kAlignment - misaligned;
}

std::byte* Arena::bytes(std::int64_t count) {
  std::byte* piece = next_;
  next_ += aligned_bytes(count);
  if (next_ > end_) fail("forward pass", "", "scratch is smaller than a step needs");
  return piece;
}

}  // namespace quantmap
