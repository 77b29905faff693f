// GGUF tensor types and the decoding of their blocks (formats.md, section 6; ggml `ggml-common.h`). Rows are
// runs of whole blocks; every multi-byte field is little-endian; d, dmin and m are FP16. One FP32 rounding
// per operation, in the order that the table of section 6 writes, as ggml's dequantize_row_* do without FMA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace quantmap {

struct GgmlType {
  std::int32_t id;        // as stored in a GGUF tensor info
  std::string_view name;  // as ggml prints it, in capitals: `Q4_K`, `F16`
  std::int32_t block;     // values in a block; a row is a multiple of it
  std::int32_t bytes;     // bytes of a block
  bool decoded;           // decode_ggml takes it; false: known by name and size only
};

// Every type that ggml names today, removed ids (4, 5, 31-33, 36-38) left out, by rising id.
std::span<const GgmlType> ggml_types();
const GgmlType* find_ggml_type(std::int32_t id);  // null: unknown or removed

// Decodes `values` values (a multiple of type.block, else Error (failed)) to FP32. `data` holds values /
// block * bytes bytes and needs no alignment. Throws Error (input) naming the type if it is not decoded.
void decode_ggml(const GgmlType& type, const std::byte* data, std::int64_t values, float* out);

}  // namespace quantmap
