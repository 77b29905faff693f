// What a .cu file includes: CUDA itself under nvcc, kernels/emulation under the host compiler, with one
// spelling for launches, shared memory and the memory that a kernel is given.
#pragma once

#include "kernels/device_kernels.hpp"

// Everything that is compiled here lives in a namespace of its device, so that one program can hold several.
#ifndef QUANTMAP_DEVICE
#ifdef __CUDACC__
#define QUANTMAP_DEVICE cuda
#else
#define QUANTMAP_DEVICE emulated
#endif
#endif

// A mistake built in on purpose, to see that the tests find it (tests/emulated/faults_test.cpp).
#ifndef QUANTMAP_FAULT
#define QUANTMAP_FAULT none
#endif

// Before a loop over an array that must lie in registers.
#ifdef __CUDACC__
#define QUANTMAP_UNROLL _Pragma("unroll")
#else
#define QUANTMAP_UNROLL
#endif

#ifdef __CUDACC__

#include <string>

#include "core/error.hpp"

namespace quantmap {

template <class T>
using Global = T*;
template <class T>
using Shared = T*;

template <class T, int N, class Tag>
__device__ __forceinline__ T* shared() {
  __shared__ T memory[N];
  return memory;
}
template <class T>
__device__ __forceinline__ T* dynamic_shared(std::int64_t offset, std::int64_t) {
  extern __shared__ __align__(16) unsigned char dynamic_memory[];
  return reinterpret_cast<T*>(dynamic_memory + offset);
}

// Device memory for as long as it lives, in the order of the stream.
template <class T>
class Scratch {
 public:
  Scratch(std::int64_t count, Stream stream) : stream_(static_cast<cudaStream_t>(stream.handle)) {
    const auto bytes = static_cast<std::size_t>(count > 0 ? count : 1) * sizeof(T);
    if (const cudaError_t status = cudaMallocAsync(&data_, bytes, stream_); status != cudaSuccess)
      fail("CUDA", "", std::string("no memory for a kernel: ") + cudaGetErrorString(status));
  }
  ~Scratch() { cudaFreeAsync(data_, stream_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() const { return data_; }

 private:
  T* data_ = nullptr;
  cudaStream_t stream_;
};

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::int64_t shared_bytes, Stream stream,
            const Arguments&... arguments) {
  kernel<<<grid, block, static_cast<std::size_t>(shared_bytes), static_cast<cudaStream_t>(stream.handle)>>>(
      static_cast<Parameters>(arguments)...);
  if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess)
    fail("CUDA", "", std::string("a kernel did not start: ") + cudaGetErrorString(status));
}

}  // namespace quantmap

#else

#include "kernels/emulation/cuda.hpp"

#endif

namespace quantmap::QUANTMAP_DEVICE {

enum class Fault : std::uint8_t { none, off_by_one, missing_barrier, wrong_lane };
inline constexpr Fault kFault = Fault::QUANTMAP_FAULT;
inline constexpr int kOffByOne = kFault == Fault::off_by_one ? 1 : 0;

// The barrier that each kernel's missing_barrier leaves out.
__device__ inline void planned_barrier() {
  if constexpr (kFault != Fault::missing_barrier) __syncthreads();
}

}  // namespace quantmap::QUANTMAP_DEVICE
