// Quantize a matrix and give back what a kernel would multiply. Rules: formats.md, sections 2 to 5 and 7, one
// FP32 rounding per operation in the order written there. All functions are deterministic, allocate nothing
// per value, and may be called from several threads on different rows.
//
// Matrices are row-major and contiguous, [rows][cols]: W is [out][in], activations [tokens][features], a
// cache [tokens * kv_heads][head_dim] (granularity column: [tokens][kv_heads * head_dim]).
//
// Non-finite input: counted, never turned into a number silently. What shares a scale with it decodes to NaN
// (an FP32, FP16 or BF16 scale, E8M0 and E4M3 all have one). Where the scale is not its own (unit, a
// TensorRange that left it out, NVFP4's tensor scale, casts) Inf saturates (fp16, bf16: stays Inf) and NaN
// stays NaN.
#pragma once

#include <cstdint>
#include <span>

#include "formats/spec.hpp"

namespace quantmap {

struct QuantCounts {
  // Finite values whose nearest point on the format's grid, continued without end, lies beyond its range:
  // round first, then compare (faults.md, B01). 464 is not counted in E4M3; +7.5 steps is in `full` int4.
  // Casts: to Inf.
  std::int64_t saturated = 0;
  std::int64_t nonfinite = 0;         // NaN and Inf among the input
  std::int64_t zero_groups = 0;       // groups whose maximum is 0 (scale 1, codes 0)
  std::int64_t underflow_blocks = 0;  // nvfp4 blocks whose scale underflowed to 0
  void merge(const QuantCounts& other);
  bool operator==(const QuantCounts&) const = default;
};

// What a tensor-wide scale is taken from, when the matrix comes in pieces. Merge of pieces equals the whole.
struct TensorRange {
  float min = 0;  // of the finite values and 0
  float max = 0;
  float amax = 0;
  std::int64_t nonfinite = 0;  // NaN and Inf, left out above; if any, an integer or FP8 tensor scale is NaN
  void merge(const TensorRange& other);
};
TensorRange measure_range(std::span<const float> values);

// A matrix may be quantized in pieces of whole rows, each a multiple of this many (the last may be less),
// with the result of the whole: 1 where rows are independent (given the range), tile_rows for tiles, as many
// as end on a block for nf4 (its blocks run over row ends); `rows` where only the whole will do (column,
// nested nf4).
std::int64_t piece_rows(const QuantSpec& spec, std::int64_t rows, std::int64_t cols);

// Quantize, then decode: out[i] is the FP32 value that the format stores for x[i]. `range`: the whole
// tensor's, needed iff spec.needs_tensor_range() and x is only a part of it; null: measured from x. x and out
// may be the same array. `counts` are added to; null: not wanted. `bf16` rounds to BF16 here as any format
// rounds; callers that mean "the checkpoint's own values" skip specs that are is_reference().
void quantize_dequantize(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                         float* out, const TensorRange* range, QuantCounts* counts);

// Operand form: element values before their outer scale, which a product applies outside its sum
// (architecture.md, Arithmetic). value(r, c) = operand[r][c] * outer scale.
enum class OuterScale : std::uint8_t {
  none,       // the operand is the decoded value (for BF16 it is rounded once from FP32 unless exact)
  tensor,     // one float
  row,        // float[rows]
  row_group,  // float[rows][ceil(cols/group)]: constant on K blocks of `group`
  tile,       // float[ceil(rows/tile_rows)][ceil(cols/tile_cols)]: constant on K blocks of tile_cols
};
struct OperandForm {
  OuterScale outer = OuterScale::none;
  std::int32_t group = 0;      // K block: row_group and tile
  std::int32_t tile_rows = 0;  // tile
  bool exact_in_bf16 = false;  // every operand value is a BF16 number (barring subnormals, see below)
};
// The form of a format and granularity: integers (zero point already subtracted) and FP8 with tensor, row,
// tile and (fp8 only) group scales keep the scale outside; MX folds its power of two; NVFP4 keeps E2M1*E4M3
// with the tensor scale outside; the rest (int groups, nf4, column) is decoded.
OperandForm operand_form(const QuantSpec& spec);
std::int64_t outer_scale_count(const OperandForm& form, std::int64_t rows, std::int64_t cols);

// Writes operand values (BF16 bits) and outer scales. Operand values that BF16 cannot hold exactly are
// rounded once from FP32 (nearest even). Returns the number of non-zero operand values outside BF16's normal
// range (oneDNN flushes BF16 subnormals): the caller then takes the FP32 path for this operand.
std::int64_t quantize_operand_bf16(const QuantSpec& spec, std::int64_t rows, std::int64_t cols,
                                   const float* x, std::uint16_t* operand, float* outer,
                                   const TensorRange* range, QuantCounts* counts);

}  // namespace quantmap
