// GGUF blocks quantized and decoded, row by row: what quantize_dequantize does for formats of kind ggml.
// Equal bit for bit to decode_ggml(encode_ggml(x)) (ggml_encode.hpp); types worth it never form the bytes.
#pragma once

#include <cstdint>

#include "formats/ggml_blocks.hpp"
#include "formats/quantize.hpp"

namespace quantmap {

// n: whole blocks of the type (an error of the caller else); any values; out may be x, and does not overlap
// it otherwise. Counts, by block of the type: nonfinite values (the others are then not looked at), blocks of
// zeros as zero_groups, blocks that became zeros because their scale underflowed (beyond about 1e12: because
// ggml's search overflowed) as underflow_blocks, finite values whose scale overflowed FP16, so that they
// decode to Inf or NaN, as saturated. (A code clamped to its range is part of these formats' search and is
// not counted.)
void round_ggml(const GgmlType& type, const float* x, std::int64_t n, float* out, QuantCounts& counts);

// The counts of blocks of `block` values x that decode to y. F16, block 1: nonfinite and saturated only.
void count_ggml(const float* x, const float* y, std::int64_t n, std::int32_t block, QuantCounts& counts);

}  // namespace quantmap
