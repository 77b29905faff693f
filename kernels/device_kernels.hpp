// The kernels of a device as a table. Each does what the function of the same name on the CPU does
// (kernels/OP/OP.hpp), on device memory and in the order of a stream. The .cu files are compiled by nvcc, and
// by the host compiler against kernels/emulation, where `emulated::kernels()` runs them on the processor.
#pragma once

#include <cstdint>

namespace quantmap {

// A queue of work of one device; null: the default one. (A cudaStream_t; the emulation has none.)
struct Stream {
  void* handle = nullptr;
};

struct RowDifference;
struct RowMoments;

struct DeviceKernels {
  // row_difference() of each row; x, y: [rows][cols], out: [rows].
  void (*difference)(const float* x, const float* y, std::int64_t rows, std::int64_t cols, RowDifference* out,
                     Stream stream);
  // row_moments() of each row.
  void (*moments)(const float* x, std::int64_t rows, std::int64_t cols, RowMoments* out, Stream stream);
  void (*rms_norm)(const float* x, std::int64_t x_stride, const float* weight, float eps, std::int64_t rows,
                   std::int64_t cols, float* out, std::int64_t out_stride, Stream stream);
  void (*rope)(float* x, std::int64_t stride, std::int64_t rows, std::int64_t heads, std::int64_t head_dim,
               const float* cosines, const float* sines, Stream stream);
  void (*swiglu)(const float* gate, std::int64_t gate_stride, const float* up, std::int64_t up_stride,
                 std::int64_t rows, std::int64_t cols, float* out, std::int64_t out_stride, Stream stream);
};

namespace emulated {
const DeviceKernels& kernels();
}

}  // namespace quantmap
