// Quantize and measure: what a format would do to a matrix, without keeping what it becomes.
#pragma once

#include <cstdint>

#include "formats/quantize.hpp"
#include "kernels/difference/difference.hpp"

namespace quantmap {

// errors[r] = row_difference(x[r], q[r]) for q = quantize_dequantize(spec, rows, cols, x, range, counts), to
// the bit; x is read once, row-major, and each row is measured while it is in the cache. Scratch: a few rows
// (all of q where piece_rows() says that only the whole matrix can be quantized).
void quantize_error(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                    const TensorRange* range, RowDifference* errors, QuantCounts* counts);
// The same by the reference quantizer, and sums in the order of the values.
void quantize_error_ref(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                        const TensorRange* range, RowDifference* errors, QuantCounts* counts);

}  // namespace quantmap
