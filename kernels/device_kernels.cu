// The table of device_kernels.hpp for the device that this is compiled for.
#include "kernels/cuda.hpp"

namespace quantmap::QUANTMAP_DEVICE {

void attention(const AttentionInput& input, Stream stream);
void compare(const float* logits, std::int64_t stride, const float* reference_logits,
             std::int64_t reference_stride, const std::int32_t* targets, std::int64_t tokens,
             std::int64_t vocabulary, const ReferenceRow* references, TokenScore* out, Stream stream);
void difference(const float* x, const float* y, std::int64_t rows, std::int64_t cols, RowDifference* out,
                Stream stream);
void encode(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
            const TensorRange* range, const EncodedArrays& out, QuantCounts* counts, Stream stream);
void quantize_dequantize(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                         float* out, const TensorRange* range, QuantCounts* counts, Stream stream);
void quantize_error(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                    const TensorRange* range, RowDifference* errors, QuantCounts* counts, Stream stream);
void hadamard(const float* x, std::int64_t rows, std::int64_t cols, std::int64_t size, float* out,
              Stream stream);
void percentiles(const float* x, std::int64_t rows, std::int64_t cols, double fraction, float* out,
                 Stream stream);
void peaks(const float* x, std::int64_t rows, std::int64_t cols, RowPeak* out, Stream stream);
void moments(const float* x, std::int64_t rows, std::int64_t cols, RowMoments* out, Stream stream);
void reference_rows(const float* logits, std::int64_t stride, const std::int32_t* targets,
                    std::int64_t tokens, std::int64_t vocabulary, ReferenceRow* out, Stream stream);
void rms_norm(const float* x, std::int64_t x_stride, const float* weight, float eps, std::int64_t rows,
              std::int64_t cols, float* out, std::int64_t out_stride, Stream stream);
void rope(float* x, std::int64_t stride, std::int64_t rows, std::int64_t heads, std::int64_t head_dim,
          const float* cosines, const float* sines, Stream stream);
void swiglu(const float* gate, std::int64_t gate_stride, const float* up, std::int64_t up_stride,
            std::int64_t rows, std::int64_t cols, float* out, std::int64_t out_stride, Stream stream);

const DeviceKernels& kernels();
const DeviceKernels& kernels() {
  static constexpr DeviceKernels table = {
      .attention = attention,
      .compare = compare,
      .difference = difference,
      .encode = encode,
      .quantize_dequantize = quantize_dequantize,
      .quantize_error = quantize_error,
      .hadamard = hadamard,
      .percentiles = percentiles,
      .peaks = peaks,
      .moments = moments,
      .reference_rows = reference_rows,
      .rms_norm = rms_norm,
      .rope = rope,
      .swiglu = swiglu,
  };
  return table;
}

}  // namespace quantmap::QUANTMAP_DEVICE
