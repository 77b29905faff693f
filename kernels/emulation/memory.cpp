#include "kernels/emulation/memory.hpp"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "core/error.hpp"

namespace quantmap::emulation {
namespace {

struct Allocation {
  std::unique_ptr<std::byte[]> data;
  std::int64_t bytes;
};
std::mutex guard;
std::map<const std::byte*, Allocation>& allocations() {
  static std::map<const std::byte*, Allocation> all;  // by address
  return all;
}

}  // namespace

void* allocate(std::int64_t bytes) {
  auto data = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes > 0 ? bytes : 1));
  std::memset(data.get(), 0xFF, static_cast<std::size_t>(bytes));
  std::byte* at = data.get();
  const std::scoped_lock lock(guard);
  allocations()[at] = {std::move(data), bytes};
  return at;
}

void release(void* memory) {
  if (!memory) return;
  const std::scoped_lock lock(guard);
  if (allocations().erase(static_cast<std::byte*>(memory)) == 0)
    fail("emulation", "", "memory is released that is not the beginning of device memory");
}

Extent allocation_of(const void* pointer) {
  const auto* at = static_cast<const std::byte*>(pointer);
  const std::scoped_lock lock(guard);
  auto next = allocations().upper_bound(at);
  if (next != allocations().begin()) {
    const Allocation& found = (--next)->second;
    if (at - found.data.get() <= found.bytes) return {found.data.get(), found.bytes};
  }
  fail("emulation", "", "a kernel is given a pointer that is not device memory");
}

}  // namespace quantmap::emulation
