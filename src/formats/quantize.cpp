#include "formats/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/encoded.hpp"
#include "formats/extent.hpp"
#include "formats/ggml_encode.hpp"
#include "formats/ggml_rows.hpp"
#include "formats/nf4.hpp"
#include "formats/nvfp4.hpp"
#include "formats/row_kernels.hpp"

namespace quantmap {
namespace {

std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

// Where rows go: decoded floats in place, or through one row of floats into BF16 operands.
class RowOutput {
 public:
  explicit RowOutput(float* decoded) : decoded_(decoded) {}
  RowOutput(std::uint16_t* operand, std::int64_t longest)
      : operand_(operand), scratch_(static_cast<std::size_t>(longest)) {}

  // A run of values from index `first` of the matrix: write it to begin(), then call end().
  float* begin(std::int64_t first) { return operand_ ? scratch_.data() : decoded_ + first; }
  void end(std::int64_t first, std::int64_t count) {
    if (operand_) outside_ += pack_bf16(scratch_.data(), count, operand_ + first);
  }
  std::int64_t outside() const { return outside_; }

 private:
  float* decoded_ = nullptr;
  std::uint16_t* operand_ = nullptr;
  std::vector<float> scratch_;
  std::int64_t outside_ = 0;
};

struct Job {
  const QuantSpec& spec;
  std::int64_t rows, cols;
  const float* x;
  const TensorRange* range;
  bool decode;   // write decoded values; else operands before their outer scale
  float* outer;  // outer scales; null where there are none
  RowOutput& output;
  QuantCounts& counts;
};

using RunKernel = std::int64_t (*)(const float*, std::int64_t, std::int64_t, const RunScale*, ScaledRow,
                                   float*);

RunKernel run_kernel(const Format& format) {
  if (format.kind == FormatKind::integer) return round_integer_runs;
  return format.id == "fp8_e5m2" ? round_e5m2_runs : round_e4m3_runs;
}

// A row whose scale knows nothing of its non-finite values: they are set to 0, the rest is rounded, and then
// they get what their codes decode to.
void round_with_specials(const Job& job, const float* x, const RunScale& run, ScaledRow how, float* out) {
  const bool integer = job.spec.format->kind == FormatKind::integer;
  std::vector<float> finite(x, x + job.cols);
  for (float& value : finite) {
    if (!std::isfinite(value)) value = 0;
  }
  std::vector<float> rounded(finite.size());
  job.counts.saturated +=
      run_kernel(*job.spec.format)(finite.data(), job.cols, job.cols, &run, how, rounded.data());
  const float post = how.decode ? run.scale : 1.0F;
  for (std::int64_t i = 0; i < job.cols; ++i) {
    const float value = x[i];
    float& to = rounded[static_cast<std::size_t>(i)];
    if (std::isnan(value)) to = value;
    if (std::isinf(value)) to = (value > 0 ? run.highest : integer ? run.lowest : -run.highest) * post;
  }
  std::copy(rounded.begin(), rounded.end(), out);
}

// Scale shared by the whole tensor.
void tensor_scaled(const Job& job) {
  RunScale run;
  if (job.spec.source == ScaleSource::unit) {
    run = run_scale(job.spec, {});
  } else {
    const TensorRange range =
        job.range ? *job.range : measure_range({job.x, static_cast<std::size_t>(job.rows * job.cols)});
    run = run_scale(job.spec, {range.min, range.max, range.nonfinite > 0});
    job.counts.zero_groups += run.zero_group ? 1 : 0;
  }
  if (job.outer) *job.outer = run.scale;
  const ScaledRow how{multiplies_by_inverse(job.spec), job.decode};
  for (std::int64_t row = 0; row < job.rows; ++row) {
    const std::int64_t first = row * job.cols;
    const std::int64_t nonfinite = count_nonfinite(job.x + first, job.cols);
    job.counts.nonfinite += nonfinite;
    float* out = job.output.begin(first);
    if (nonfinite > 0 && !std::isnan(run.scale)) {
      round_with_specials(job, job.x + first, run, how, out);
    } else {
      job.counts.saturated += run_kernel(*job.spec.format)(job.x + first, job.cols, job.cols, &run, how, out);
    }
    job.output.end(first, job.cols);
  }
}

// Scales along the row: runs of `run` columns, shared by bands of `band` rows.
void tiled(const Job& job, std::int64_t band, std::int64_t run) {
  const auto across = static_cast<std::size_t>(ceil_div(job.cols, run));
  std::vector<std::int32_t> lo(across), hi(across);
  std::vector<RunScale> runs(across);
  const ScaledRow how{multiplies_by_inverse(job.spec), job.decode};
  float* outer = job.outer;
  for (std::int64_t top = 0; top < job.rows; top += band) {
    const std::int64_t bottom = std::min(job.rows, top + band);
    std::fill(lo.begin(), lo.end(), 0);
    std::fill(hi.begin(), hi.end(), 0);
    for (std::int64_t row = top; row < bottom; ++row) {
      widen_by_runs(job.x + row * job.cols, job.cols, run, lo.data(), hi.data());
    }
    bool nonfinite = false;
    for (std::size_t k = 0; k < across; ++k) {
      const Extent extent = extent_of(lo[k], hi[k]);
      runs[k] = run_scale(job.spec, extent);
      nonfinite |= extent.nonfinite;
      job.counts.zero_groups += runs[k].zero_group ? 1 : 0;
      if (outer) *outer++ = runs[k].scale;
    }
    for (std::int64_t row = top; row < bottom; ++row) {
      const std::int64_t first = row * job.cols;
      if (nonfinite) job.counts.nonfinite += count_nonfinite(job.x + first, job.cols);
      float* out = job.output.begin(first);
      job.counts.saturated +=
          run_kernel(*job.spec.format)(job.x + first, job.cols, run, runs.data(), how, out);
      job.output.end(first, job.cols);
    }
  }
}

// One scale for each column; always decoded.
void by_column(const Job& job) {
  const auto cols = static_cast<std::size_t>(job.cols);
  std::vector<std::int32_t> lo(cols), hi(cols);
  for (std::int64_t row = 0; row < job.rows; ++row) {
    widen_by_columns(job.x + row * job.cols, job.cols, lo.data(), hi.data());
  }
  std::vector<float> scale(cols), lowest(cols), highest(cols);
  bool nonfinite = false;
  for (std::size_t c = 0; c < cols; ++c) {
    const Extent extent = extent_of(lo[c], hi[c]);
    const RunScale run = run_scale(job.spec, extent);
    nonfinite |= extent.nonfinite;
    job.counts.zero_groups += run.zero_group ? 1 : 0;
    scale[c] = run.scale;
    lowest[c] = run.lowest;
    highest[c] = run.highest;
  }
  const Format& format = *job.spec.format;
  for (std::int64_t row = 0; row < job.rows; ++row) {
    const std::int64_t first = row * job.cols;
    const float* x = job.x + first;
    if (nonfinite) job.counts.nonfinite += count_nonfinite(x, job.cols);
    float* out = job.output.begin(first);
    job.counts.saturated +=
        format.kind == FormatKind::integer
            ? round_integer_columns(x, job.cols, scale.data(), lowest.data(), highest.data(), out)
        : format.id == "fp8_e5m2" ? round_e5m2_columns(x, job.cols, scale.data(), out)
                                  : round_e4m3_columns(x, job.cols, scale.data(), out);
    job.output.end(first, job.cols);
  }
}

void scaled(const Job& job) {
  switch (job.spec.granularity) {
    case Granularity::tensor:
      return tensor_scaled(job);
    case Granularity::row:
      return tiled(job, 1, job.cols);
    case Granularity::group:
      return tiled(job, 1, job.spec.group);
    case Granularity::tile:
      return tiled(job, job.spec.tile_rows, job.spec.tile_cols);
    case Granularity::column:
      return by_column(job);
    case Granularity::own:
      break;
  }
  throw std::logic_error("granularity of " + std::string(job.spec.format->id));
}

void cast(const Job& job) {
  for (std::int64_t row = 0; row < job.rows; ++row) {
    const std::int64_t first = row * job.cols;
    const float* x = job.x + first;
    job.counts.nonfinite += count_nonfinite(x, job.cols);
    float* out = job.output.begin(first);
    job.counts.saturated +=
        job.spec.format->id == "fp16" ? round_fp16(x, job.cols, out) : round_bf16(x, job.cols, out);
    job.output.end(first, job.cols);
  }
}

void mx(const Job& job) {
  for (std::int64_t row = 0; row < job.rows; ++row) {
    const std::int64_t first = row * job.cols;
    const auto round = job.spec.format->bits == 8 ? round_mx_e4m3 : round_mx_e2m1;
    round(job.x + first, job.cols, job.spec.rule, job.output.begin(first), job.counts);
    job.output.end(first, job.cols);
  }
}

void nvfp4(const Job& job) {
  const QuantSpec& spec = job.spec;
  float amax = nvfp4_unit_amax(spec.four_over_six);
  if (!spec.no_global) {
    amax = job.range ? job.range->amax
                     : measure_range({job.x, static_cast<std::size_t>(job.rows * job.cols)}).amax;
  }
  const float g = nvfp4_tensor_scale(amax);
  if (job.outer) *job.outer = spec.four_over_six ? FourOverSix(amax).decode_scale : g;
  for (std::int64_t row = 0; row < job.rows; ++row) {
    const std::int64_t first = row * job.cols;
    float* out = job.output.begin(first);
    if (spec.four_over_six) {
      round_nvfp4_4over6(job.x + first, job.cols, amax, job.decode, out, job.counts);
    } else {
      round_nvfp4(job.x + first, job.cols, g, job.decode, out, job.counts);
    }
    job.output.end(first, job.cols);
  }
}

constexpr std::int64_t kNf4Chunk = 64 * kNf4Block;

void nf4(const Job& job) {
  const std::int64_t values = job.rows * job.cols;
  std::vector<float> decoded;
  if (job.spec.nested) {
    std::vector<float> absmax(static_cast<std::size_t>(ceil_div(values, kNf4Block)));
    nf4_absmax(job.x, values, absmax.data());
    decoded = nest_absmax(absmax).decoded;
  }
  for (std::int64_t first = 0; first < values; first += kNf4Chunk) {
    const std::int64_t count = std::min(kNf4Chunk, values - first);
    const float* absmax = job.spec.nested ? decoded.data() + first / kNf4Block : nullptr;
    round_nf4(job.x + first, count, absmax, job.output.begin(first), job.counts);
    job.output.end(first, count);
  }
}

void ggml(const Job& job) {
  const GgmlType& type = ggml_stored_type(*job.spec.format, job.cols);
  for (std::int64_t row = 0; row < job.rows; ++row) {
    const std::int64_t first = row * job.cols;
    round_ggml(type, job.x + first, job.cols, job.output.begin(first), job.counts);
    job.output.end(first, job.cols);
  }
}

void quantize(const Job& job) {
  if (job.rows == 0 || job.cols == 0) return;
  switch (job.spec.format->kind) {
    case FormatKind::cast:
      return cast(job);
    case FormatKind::integer:
    case FormatKind::minifloat:
      return scaled(job);
    case FormatKind::mx:
      return mx(job);
    case FormatKind::nvfp4:
      return nvfp4(job);
    case FormatKind::lookup:
      return nf4(job);
    case FormatKind::ggml:
      return ggml(job);
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
  switch (spec.granularity) {
    case Granularity::column:
      return std::max<std::int64_t>(rows, 1);
    case Granularity::tile:
      return spec.tile_rows;
    default:
      break;
  }
  if (spec.format->kind != FormatKind::lookup) return 1;
  return spec.nested ? std::max<std::int64_t>(rows, 1)
                     : kNf4Block / std::gcd(kNf4Block, std::max<std::int64_t>(cols, 1));
}

void quantize_dequantize(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                         float* out, const TensorRange* range, QuantCounts* counts) {
  RowOutput output(out);
  QuantCounts unwanted;
  quantize({spec, rows, cols, x, range, true, nullptr, output, counts ? *counts : unwanted});
}

OperandForm operand_form(const QuantSpec& spec) {
  OperandForm form;
  switch (spec.format->kind) {
    case FormatKind::cast:
      form.exact_in_bf16 = spec.format->id == "bf16";
      return form;
    case FormatKind::mx:
      form.exact_in_bf16 = true;
      return form;
    case FormatKind::nvfp4:
      form.outer = spec.no_global ? OuterScale::none : OuterScale::tensor;
      form.exact_in_bf16 = true;
      return form;
    case FormatKind::lookup:
    case FormatKind::ggml:
      return form;
    case FormatKind::integer:
    case FormatKind::minifloat:
      break;
  }
  switch (spec.granularity) {
    case Granularity::tensor:
      form.outer = OuterScale::tensor;
      break;
    case Granularity::row:
      form.outer = OuterScale::row;
      break;
    case Granularity::tile:
      form.outer = OuterScale::tile;
      form.tile_rows = spec.tile_rows;
      form.group = spec.tile_cols;
      break;
    case Granularity::group:
      if (spec.format->kind == FormatKind::integer) break;
      form.outer = OuterScale::row_group;
      form.group = spec.group;
      break;
    case Granularity::column:
    case Granularity::own:
      break;
  }
  form.exact_in_bf16 = form.outer != OuterScale::none;
  return form;
}

std::int64_t outer_scale_count(const OperandForm& form, std::int64_t rows, std::int64_t cols) {
  switch (form.outer) {
    case OuterScale::none:
      return 0;
    case OuterScale::tensor:
      return 1;
    case OuterScale::row:
      return rows;
    case OuterScale::row_group:
      return rows * ceil_div(cols, form.group);
    case OuterScale::tile:
      return ceil_div(rows, form.tile_rows) * ceil_div(cols, form.group);
  }
  throw std::logic_error("outer scale");
}

std::int64_t quantize_operand_bf16(const QuantSpec& spec, std::int64_t rows, std::int64_t cols,
                                   const float* x, std::uint16_t* operand, float* outer,
                                   const TensorRange* range, QuantCounts* counts) {
  const OperandForm form = operand_form(spec);
  const bool flat = spec.format->kind == FormatKind::lookup;
  RowOutput output(operand, flat ? std::min(rows * cols, kNf4Chunk) : cols);
  QuantCounts unwanted;
  const bool decode = form.outer == OuterScale::none;
  quantize(
      {spec, rows, cols, x, range, decode, decode ? nullptr : outer, output, counts ? *counts : unwanted});
  return output.outside();
}

}  // namespace quantmap
