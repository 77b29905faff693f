// The encoding of GGUF blocks: the bytes that llama-quantize writes without an importance matrix (formats.md,
// section 6; llama.cpp's ggml-quants.c, libggml 0.25.3). Plain code, one block at a time: the reference that
// the fast quantizers (ggml_rows.hpp) must equal. FP32, one rounding per operation, sums in the order of
// elements.
//
// Codes come from the unrounded scale, the file gets its FP16 (K-quants: codes are chosen once more with the
// FP16 scales). Where ggml's C is undefined (a scale so small that its inverse is infinite) codes are
// those of zeros.
//
// A block with NaN or Inf decodes to NaN as a whole (NVFP4: its 16 values that share a scale): ggml's own
// result would be a number there. A finite block whose scale overflows FP16 has the scale Inf, as in ggml.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/ggml_blocks.hpp"
#include "formats/registry.hpp"

namespace quantmap {

// The type of a registry row of kind ggml (`q4_k`: Q4_K, `ggml_mxfp4`: MXFP4).
const GgmlType& ggml_type_of(const Format& format);

// What rows of `cols` values are kept in: the format's own type where its block divides them, else what
// llama-quantize falls back to (src/llama-quant.cpp): Q2_K, Q3_K, TQ1_0, TQ2_0, Q2_0 to Q4_0, Q4_K to Q5_0,
// Q5_K to Q5_1, Q6_K to Q8_0, IQ4_XS to IQ4_NL; and F16 where that does not fit either. (Q1_0 and NVFP4, for
// which llama-quantize stops, take F16 too.)
const GgmlType& ggml_stored_type(const Format& format, std::int64_t cols);

// Writes values / block * bytes bytes. Throws Error (failed) if `values` is no multiple of type.block, or if
// the type is none that this encodes: the quantized types of the registry, and F16.
void encode_ggml(const GgmlType& type, const float* x, std::int64_t values, std::byte* out);

}  // namespace quantmap
