// Operands of the model's products: a tile of activations and a Linear's weights, each in its scheme's
// format, in the form that a kernel multiplies (architecture.md, Arithmetic; formats/quantize.hpp,
// OperandForm).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/tensor_source.hpp"
#include "formats/quantize.hpp"
#include "kernels/matmul/matmul.hpp"

namespace quantmap {

enum class Compute : std::uint8_t { bf16, f32, bf16_serve };
const char* compute_name(Compute compute);  // `bf16`, `f32`, `bf16-serve`

inline constexpr std::int64_t kTileRows = 128;   // tokens in a tile
inline constexpr std::int64_t kChunkRows = 512;  // outputs of a Linear packed and multiplied together

// How a Linear's two operands meet.
struct LinearForm {
  QuantSpec weight, activation;
  // Values are rounded to BF16 before they are multiplied (unless their format is exact there or FP16).
  bool round_to_bf16 = true;
  OperandType type = OperandType::bf16;  // FP32 for --compute f32 and where FP16 values meet
  std::int64_t k_block = 0;              // partial products of this length along the summed axis; 0: none
  bool operator==(const LinearForm&) const = default;
};
LinearForm linear_form(const QuantSpec& weight, const QuantSpec& activation, Compute compute);

// quantize_dequantize and quantize_operand_bf16 for rows that are tokens: no block crosses two of them.
void quantize_tokens(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x, float* out,
                     const TensorRange* range, QuantCounts* counts);
std::int64_t quantize_token_operands(const QuantSpec& spec, std::int64_t rows, std::int64_t cols,
                                     const float* x, std::uint16_t* operand, float* outer,
                                     const TensorRange* range, QuantCounts* counts);

// A tile [rows][cols] of a Linear's input, ready to multiply. Points into the caller's scratch.
struct ActivationTile {
  std::int64_t rows = 0, cols = 0;
  const void* operand = nullptr;        // contiguous, of the form's operand type
  OuterScale outer = OuterScale::none;  // none, tensor, row, or row_group (of k_block)
  const float* scale = nullptr;
  const float* lift = nullptr;  // [rows], powers of two that undo a rescaling; null: none
};
// scratch: at least activation_scratch_bytes(form, rows, cols), 64-byte aligned. x: contiguous.
std::int64_t activation_scratch_bytes(const LinearForm& form, std::int64_t rows, std::int64_t cols);
ActivationTile prepare_activation(const LinearForm& form, std::int64_t rows, std::int64_t cols,
                                  const float* x, const TensorRange* range, std::byte* scratch,
                                  QuantCounts* counts);

// A Linear's weights in one format, packed in chunks of kChunkRows outputs.
class LinearWeights {
 public:
  // Reads `name`.weight (and .bias) from the source, quantizes and packs, on all threads.
  LinearWeights(const TensorSource& source, const std::string& name, std::int64_t out, std::int64_t in,
                bool bias, const LinearForm& form);

  std::int64_t out() const { return out_; }
  std::int64_t chunks() const { return (out_ + kChunkRows - 1) / kChunkRows; }
  std::int64_t chunk_width(std::int64_t chunk) const;
  const LinearForm& form() const { return form_; }
  std::int64_t bytes() const;
  const QuantCounts& counts() const { return counts_; }

  // y [rows][y_stride] = (tile times the chunk's weights, transposed), outer scales and bias applied.
  // partial: scratch of rows * kChunkRows floats, for products before they are scaled.
  void multiply(std::int64_t chunk, const ActivationTile& tile, float* y, std::int64_t y_stride,
                float* partial) const;

 private:
  struct Chunk {
    std::vector<PackedMatrix> blocks;  // along the summed axis: one, or one a k block
    std::vector<float> scale;          // outer scales of this chunk's rows, by form
    std::vector<float> lift;           // [rows] or empty
  };
  void build_chunk(std::int64_t chunk, float* values, const TensorRange* range, QuantCounts* counts);

  LinearForm form_;
  OperandForm weight_form_;
  std::int64_t out_ = 0, in_ = 0;
  std::vector<Chunk> chunk_;
  std::vector<float> bias_;
  QuantCounts counts_;
};
// Upper bound of what building and holding one takes, for the memory plan (scratch of `threads` included).
std::int64_t linear_weights_bytes_bound(std::int64_t out, std::int64_t in, const LinearForm& form,
                                        int threads);

}  // namespace quantmap
