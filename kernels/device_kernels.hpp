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

struct AttentionInput;
struct ReferenceRow;
struct RowDifference;
struct RowMoments;
struct TokenScore;

struct DeviceKernels {
  // attention() without scratch: all pointers of the input are device memory. head_dim at most 256.
  void (*attention)(const AttentionInput& input, Stream stream);
  // compare() of each token, without scratch: logits are not overwritten, weights are taken again. logits:
  // [tokens][vocabulary] with their row strides; targets, references, out: [tokens].
  void (*compare)(const float* logits, std::int64_t stride, const float* reference_logits,
                  std::int64_t reference_stride, const std::int32_t* targets, std::int64_t tokens,
                  std::int64_t vocabulary, const ReferenceRow* references, TokenScore* out, Stream stream);
  // row_difference() of each row; x, y: [rows][cols], out: [rows].
  void (*difference)(const float* x, const float* y, std::int64_t rows, std::int64_t cols, RowDifference* out,
                     Stream stream);
  // row_moments() of each row.
  void (*moments)(const float* x, std::int64_t rows, std::int64_t cols, RowMoments* out, Stream stream);
  // reference_row() of each token.
  void (*reference_rows)(const float* logits, std::int64_t stride, const std::int32_t* targets,
                         std::int64_t tokens, std::int64_t vocabulary, ReferenceRow* out, Stream stream);
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
