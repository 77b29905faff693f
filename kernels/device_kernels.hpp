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
struct QuantCounts;
struct QuantSpec;
struct ReferenceRow;
struct RowDifference;
struct RowMoments;
struct RowPeak;
struct TensorRange;
struct TokenScore;

// Fields of Encoded (formats/encoded.hpp) in device memory; null: not wanted, or not of the format.
struct EncodedArrays {
  std::int32_t* codes = nullptr;
  float* scales = nullptr;
  std::int32_t* zero_points = nullptr;
  std::uint8_t* block_scales = nullptr;
  float* tensor_scale = nullptr;  // one
};

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
  // These three: spec and range lie in the host's memory; counts (one, added to; null: not wanted) do not.
  // Refused: GGUF blocks, double quantization, the method mse.
  void (*encode)(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                 const TensorRange* range, const EncodedArrays& out, QuantCounts* counts, Stream stream);
  void (*quantize_dequantize)(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                              float* out, const TensorRange* range, QuantCounts* counts, Stream stream);
  void (*quantize_error)(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                         const TensorRange* range, RowDifference* errors, QuantCounts* counts, Stream stream);
  // size: at most kMostHadamard.
  void (*hadamard)(const float* x, std::int64_t rows, std::int64_t cols, std::int64_t size, float* out,
                   Stream stream);
  void (*percentiles)(const float* x, std::int64_t rows, std::int64_t cols, double fraction, float* out,
                      Stream stream);
  // row_peak() of each row: amax and its place.
  void (*peaks)(const float* x, std::int64_t rows, std::int64_t cols, RowPeak* out, Stream stream);
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
