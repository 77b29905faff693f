#include "formats/encoded.hpp"

#include <cmath>
#include <vector>

#include "formats/bf16.hpp"
#include "formats/encoded_kinds.hpp"
#include "formats/fp16.hpp"
#include "formats/ggml_encode.hpp"
#include "formats/ggml_rows.hpp"

namespace quantmap {

void encode_cast(Encoded& e, const float* x) {
  const bool half = e.spec.format->id == "fp16";
  for (std::size_t i = 0; i < e.codes.size(); ++i) {
    e.codes[i] = half ? fp16_from_float(x[i]) : bf16_from_float(x[i]);
    const float stored = half ? float_from_fp16(fp16_from_float(x[i])) : round_to_bf16(x[i]);
    if (!std::isfinite(x[i])) {
      ++e.counts.nonfinite;
    } else if (!std::isfinite(stored)) {
      ++e.counts.saturated;
    }
  }
}

void decode_cast(const Encoded& e, float* out) {
  const bool half = e.spec.format->id == "fp16";
  for (std::size_t i = 0; i < e.codes.size(); ++i) {
    const auto bits = static_cast<std::uint16_t>(e.codes[i]);
    out[i] = half ? float_from_fp16(bits) : float_from_bf16(bits);
  }
}

void encode_gguf(Encoded& e, const float* x) {
  const GgmlType& type = ggml_stored_type(*e.spec.format, e.cols);
  const std::int64_t values = e.rows * e.cols;
  e.blocks.resize(static_cast<std::size_t>(values / type.block * type.bytes));
  encode_ggml(type, x, values, e.blocks.data());
  std::vector<float> decoded(static_cast<std::size_t>(values));
  decode_ggml(type, e.blocks.data(), values, decoded.data());
  count_ggml(x, decoded.data(), values, type.block, e.counts);
}

Encoded encode(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
               const TensorRange* range) {
  Encoded e;
  e.spec = spec;
  e.rows = rows;
  e.cols = cols;
  e.codes.resize(static_cast<std::size_t>(rows * cols));
  if (e.codes.empty()) return e;
  switch (spec.format->kind) {
    case FormatKind::cast:
      encode_cast(e, x);
      break;
    case FormatKind::integer:
    case FormatKind::minifloat:
      encode_scaled(e, x, range);
      break;
    case FormatKind::mx:
      encode_mx(e, x);
      break;
    case FormatKind::nvfp4:
      encode_nvfp4(e, x, range ? *range : measure_range({x, e.codes.size()}));
      break;
    case FormatKind::lookup:
      encode_lookup(e, x);
      break;
    case FormatKind::ggml:
      encode_gguf(e, x);
      break;
  }
  return e;
}

void decode(const Encoded& e, float* out) {
  if (e.codes.empty()) return;
  switch (e.spec.format->kind) {
    case FormatKind::cast:
      decode_cast(e, out);
      break;
    case FormatKind::integer:
    case FormatKind::minifloat:
      decode_scaled(e, out);
      break;
    case FormatKind::mx:
      decode_mx(e, out);
      break;
    case FormatKind::nvfp4:
      decode_nvfp4(e, out);
      break;
    case FormatKind::lookup:
      decode_lookup(e, out);
      break;
    case FormatKind::ggml:
      decode_ggml(ggml_stored_type(*e.spec.format, e.cols), e.blocks.data(), e.rows * e.cols, out);
      break;
  }
}

void quantize_dequantize_ref(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                             float* out, const TensorRange* range, QuantCounts* counts) {
  const Encoded encoded = encode(spec, rows, cols, x, range);
  if (counts) counts->merge(encoded.counts);
  decode(encoded, out);
}

}  // namespace quantmap
