// Sums and maxima over the threads of a block, for .cu files: by shuffles within warps, then over the warps'
// results in their order, so that the result is the same each time.
#pragma once

#include "kernels/cuda.hpp"

namespace quantmap::QUANTMAP_DEVICE {

inline constexpr int kWarp = 32;
inline constexpr int kThreads = 256;  // of a block, in every kernel that reduces
inline constexpr int kWarps = kThreads / kWarp;
inline constexpr unsigned kAllLanes = ~0U;

__device__ inline bool is_finite(float x) { return x - x == 0; }

// Every lane gets combine(…) of the values of all 32, or of those of its section of kWidth lanes.
template <int kWidth = kWarp, class T, class Combine>
__device__ T warp_reduce(T value, Combine combine) {
  for (int distance = kWidth / 2; distance > 0; distance /= 2) {
    const int with = kFault == Fault::wrong_lane && distance == 1 ? 2 : distance;
    value = combine(value, __shfl_xor_sync(kAllLanes, value, with, kWidth));
  }
  return value;
}

// Every thread gets combine(…) over the block; all of its kThreads threads call it. Tag: a type of the call's
// own, since the shared memory of two calls must not be one.
template <class Tag, class T, class Combine>
__device__ T block_reduce(T value, Combine combine) {
  Shared<T> of_warp = shared<T, kWarps, Tag>();
  value = warp_reduce(value, combine);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread % kWarp == 0) of_warp[thread / kWarp] = value;
  planned_barrier();
  T all = of_warp[0];
  for (int w = 1; w < kWarps; ++w) all = combine(all, static_cast<T>(of_warp[w]));
  return all;
}

struct Add {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
// Of NaN and a number: the first.
struct Larger {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};

}  // namespace quantmap::QUANTMAP_DEVICE
