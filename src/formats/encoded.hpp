// The codes and scales themselves: what a file of the format would hold, unpacked. Written for clarity, one
// value at a time, through the scalar codecs; the golden vectors check this, and this checks the fast
// quantizers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "formats/quantize.hpp"
#include "formats/spec.hpp"

namespace quantmap {

struct Encoded {
  QuantSpec spec;
  std::int64_t rows = 0, cols = 0;

  // One per value, row-major. Integers: the code (asymmetric: unsigned, zero point included); floats: the bit
  // pattern; tables of levels: the code as stored. kNoCode: a NaN under a scale that is not its own, where
  // the format has no NaN.
  std::vector<std::int32_t> codes;
  static constexpr std::int32_t kNoCode = std::numeric_limits<std::int32_t>::min();

  // Integers and FP8: in the order of OuterScale's arrays (column: one per column), as stored. Lookup:
  // the absmax of each block, as decoding uses it.
  std::vector<float> scales;
  std::vector<std::int32_t> zero_points;   // asymmetric: beside each scale
  std::vector<std::uint8_t> block_scales;  // MX: E8M0; nvfp4: E4M3; each row's blocks
  float tensor_scale = 1;                  // nvfp4: g; with 4over6: S, which divides
  std::vector<std::uint8_t> absmax_codes;  // nested: entries of the dynamic map
  std::vector<float> nested_absmax;        // nested
  float nested_offset = 0;                 // nested: mean of the absmax
  std::vector<std::byte> blocks;           // GGUF: the file's bytes, row by row; `codes` are not filled

  QuantCounts counts;
};

// `range`: as for quantize_dequantize.
Encoded encode(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
               const TensorRange* range = nullptr);
void decode(const Encoded& encoded, float* out);

// decode(encode(x)): what quantize_dequantize must equal bit for bit.
void quantize_dequantize_ref(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                             float* out, const TensorRange* range, QuantCounts* counts);

// The absmax of lookup blocks after double quantization; shared by both versions, since the order of its sums
// is ours to choose (formats.md, section 13: offset within 1 ulp). NaN maxima make their block of 256 NaN.
struct NestedAbsmax {
  std::vector<std::uint8_t> codes;
  std::vector<float> nested;
  float offset = 0;
  std::vector<float> decoded;
};
NestedAbsmax nest_absmax(std::span<const float> absmax);

}  // namespace quantmap
