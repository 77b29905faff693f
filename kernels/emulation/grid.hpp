// Runs a grid of kernels on the host: see cuda.hpp. Used by that header and by tests of the emulation.
#pragma once

#include <cstdint>
#include <functional>
#include <source_location>

namespace quantmap::emulation {

inline constexpr int kWarp = 32;
inline constexpr int kMostThreads = 1024;               // of a block
inline constexpr std::int64_t kMostShared = 48 * 1024;  // bytes of a block without asking for more

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3() = default;
  template <class Integer>
  constexpr dim3(Integer nx)  // NOLINT(google-explicit-constructor): as CUDA's
      : x(static_cast<unsigned>(nx)) {}
  template <class A, class B>
  constexpr dim3(A nx, B ny, unsigned nz = 1)
      : x(static_cast<unsigned>(nx)), y(static_cast<unsigned>(ny)), z(nz) {}
};
struct Index3 {
  unsigned x, y, z;
};

// Of the fiber that runs on this thread; set before each of its turns.
inline constinit thread_local Index3 threadIdx{}, blockIdx{}, blockDim{}, gridDim{};

// A grid's size and the place of its launch, for messages.
struct GridAt {
  dim3 size;
  std::source_location at;
  template <class Size>
  GridAt(Size blocks,  // NOLINT(google-explicit-constructor)
         std::source_location where = std::source_location::current())
      : size(blocks), at(where) {}
};

// Runs body once for each thread of each block. Throws the first Error of any.
void run_grid(const GridAt& grid, dim3 block, std::int64_t shared_bytes, const std::function<void()>& body);

// While one lives, blocks run and fibers take their turns in an order drawn from the seed; no result may
// change.
class ShuffledOrder {
 public:
  explicit ShuffledOrder(std::uint64_t seed);
  ~ShuffledOrder();
  ShuffledOrder(const ShuffledOrder&) = delete;
  ShuffledOrder& operator=(const ShuffledOrder&) = delete;
};

// What a fiber calls.
int lane();
void block_barrier(std::source_location at);
void warp_barrier(unsigned mask, std::source_location at);
// Gives `value` to the lanes of the mask and returns that of lane `from`.
std::uint64_t exchange(unsigned mask, std::uint64_t value, int from, std::source_location at);
unsigned ballot(unsigned mask, bool predicate, std::source_location at);

// Where and when a thread touches shared memory: two touches are in order if one thread made them, if a block
// barrier lies between them (`round` differs), or if they are of one warp and a __syncwarp lies between them.
struct Moment {
  std::int32_t thread = -1;  // none yet
  std::int32_t round = 0;    // block barriers passed
  std::int32_t step = 0;     // __syncwarps passed
};
Moment now();
// An Error with the launch, the block and the thread.
[[noreturn]] void fail_in_kernel(const char* what, std::int64_t index, std::int64_t count);

}  // namespace quantmap::emulation
