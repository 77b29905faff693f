// CUDA's vocabulary for the host compiler: with this header a .cu file is plain C++, and its kernels run on
// the processor. A grid's blocks run on threads, a block's threads are fibers (grid.hpp) that give way at
// barriers and warp collectives only. Stricter than the hardware, since it is there to find mistakes: what
// CUDA leaves undefined is an Error that names the place.
//   - a barrier or collective that a thread of its block or mask does not reach, or reaches elsewhere;
//   - a shuffle from a lane outside the mask;
//   - an index outside a buffer (Global, Shared), a pointer that is no device memory;
//   - shared memory that is read before it is written, or that two threads use, one of them writing, with
//     no barrier in between.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "kernels/device_kernels.hpp"
#include "kernels/emulation/grid.hpp"
#include "kernels/emulation/memory.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline

namespace quantmap {

using emulation::blockDim;
using emulation::blockIdx;
using emulation::dim3;
using emulation::gridDim;
using emulation::threadIdx;

// Device memory as a kernel's parameter: [i] is checked against the allocation that the pointer lies in.
template <class T>
using Global = emulation::Global<T>;
// Shared memory: [i] is checked, and remembers who read and wrote it.
template <class T>
using Shared = emulation::Shared<T>;

// Shared memory of a block for N values; one allocation for each (T, N, Tag).
template <class T, int N, class Tag>
Shared<T> shared() {
  static const char key = 0;
  return Shared<T>(emulation::shared_memory(&key, N * sizeof(T), alignof(T)));
}
// The launch's dynamic shared memory, `count` values from byte `offset` on.
template <class T>
Shared<T> dynamic_shared(std::int64_t offset, std::int64_t count) {
  return Shared<T>(emulation::dynamic_shared_memory(offset, count * static_cast<std::int64_t>(sizeof(T))));
}

inline void __syncthreads(std::source_location at = std::source_location::current()) {
  emulation::block_barrier(at);
}
inline void __syncwarp(unsigned mask = ~0U, std::source_location at = std::source_location::current()) {
  emulation::warp_barrier(mask, at);
}

namespace emulation {
template <class T>
T exchanged(unsigned mask, T value, int from, int width, std::source_location at) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  const int own = lane();
  // Beyond its section of `width` lanes a thread gets its own value.
  const bool inside = from >= own / width * width && from < own / width * width + width;
  const std::uint64_t got = exchange(mask, bits, inside ? from : own, at);
  std::memcpy(&value, &got, sizeof(T));
  return value;
}
}  // namespace emulation

template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32,
              std::source_location at = std::source_location::current()) {
  const int section = emulation::lane() / width * width;
  return emulation::exchanged(mask, value, section + from % width, width, at);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32,
                  std::source_location at = std::source_location::current()) {
  return emulation::exchanged(mask, value, emulation::lane() ^ with, width, at);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32,
                   std::source_location at = std::source_location::current()) {
  return emulation::exchanged(mask, value, emulation::lane() + static_cast<int>(by), width, at);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32,
                 std::source_location at = std::source_location::current()) {
  return emulation::exchanged(mask, value, emulation::lane() - static_cast<int>(by), width, at);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              std::source_location at = std::source_location::current()) {
  return emulation::ballot(mask, predicate != 0, at);
}
inline int __any_sync(unsigned mask, int predicate,
                      std::source_location at = std::source_location::current()) {
  return emulation::ballot(mask, predicate != 0, at) != 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      std::source_location at = std::source_location::current()) {
  return emulation::ballot(mask, predicate != 0, at) == mask;
}

// Of global memory. Integers only: their sum does not depend on the order of blocks.
inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long value) {
  return std::atomic_ref(*at).fetch_add(value);
}

template <class T>
T __ldg(const T* at) {
  return *at;
}

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

// kernel<<<grid, block, shared_bytes, stream>>>(args…), complete when it returns.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), emulation::GridAt grid, dim3 block, std::int64_t shared_bytes,
            Stream, const Arguments&... arguments) {
  // Converted once: a pointer's allocation is looked up here, not by each thread.
  const auto body = [kernel](const Parameters&... values) { return [=] { kernel(values...); }; };
  emulation::run_grid(grid, block, shared_bytes, body(static_cast<Parameters>(arguments)...));
}

// Device memory for as long as it lives, in the order of the stream.
template <class T>
class Scratch {
 public:
  Scratch(std::int64_t count, Stream)
      : data_(static_cast<T*>(emulation::allocate(count * static_cast<std::int64_t>(sizeof(T))))) {}
  ~Scratch() { emulation::release(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() const { return data_; }

 private:
  T* data_;
};

}  // namespace quantmap
