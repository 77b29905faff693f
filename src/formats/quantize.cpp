#include "formats/quantize.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "formats/quantize_job.hpp"

namespace quantmap {
namespace {

void quantize(const Job& job) {
  if (job.rows == 0 || job.cols == 0) return;
  switch (job.spec.format->kind) {
    case FormatKind::cast:
      return quantize_cast(job);
    case FormatKind::integer:
    case FormatKind::minifloat:
      return quantize_scaled(job);
    case FormatKind::mx:
      return quantize_mx(job);
    case FormatKind::nvfp4:
      return quantize_nvfp4(job);
    case FormatKind::lookup:
      return quantize_lookup(job);
    case FormatKind::ggml:
      return quantize_ggml(job);
  }
  throw std::logic_error("no quantizer for " + std::string(job.spec.format->id));
}

}  // namespace

void QuantCounts::merge(const QuantCounts& other) {
  saturated += other.saturated;
  nonfinite += other.nonfinite;
  zero_groups += other.zero_groups;
  underflow_blocks += other.underflow_blocks;
}

std::int64_t piece_rows(const QuantSpec& spec, std::int64_t rows, std::int64_t cols) {
  const bool whole = spec.method == Method::mse && spec.granularity == Granularity::tensor;
  if (whole) return std::max<std::int64_t>(rows, 1);
  switch (spec.granularity) {
    case Granularity::column:
      return std::max<std::int64_t>(rows, 1);
    case Granularity::tile:
      return spec.tile_rows;
    default:
      break;
  }
  if (spec.format->kind != FormatKind::lookup) return 1;
  const std::int64_t block = spec.format->block;
  return spec.nested ? std::max<std::int64_t>(rows, 1)
                     : block / std::gcd(block, std::max<std::int64_t>(cols, 1));
}

void quantize_dequantize(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                         float* out, const TensorRange* range, QuantCounts* counts) {
  RowOutput output(out);
  QuantCounts unwanted;
  quantize({spec, rows, cols, x, range, true, nullptr, output, counts ? *counts : unwanted});
}

std::int64_t quantize_operand_bf16(const QuantSpec& spec, std::int64_t rows, std::int64_t cols,
                                   const float* x, std::uint16_t* operand, float* outer,
                                   const TensorRange* range, QuantCounts* counts) {
  const OperandForm form = operand_form(spec);
  const bool flat = spec.format->kind == FormatKind::lookup;
  RowOutput output(operand, flat ? std::min(rows * cols, lookup_chunk(spec)) : cols);
  QuantCounts unwanted;
  const bool decode = form.outer == OuterScale::none;
  quantize(
      {spec, rows, cols, x, range, decode, decode ? nullptr : outer, output, counts ? *counts : unwanted});
  return output.outside();
}

}  // namespace quantmap
