// Integers and small floats with a scale per granularity, and casts (formats.md, sections 1, 2 and 7).
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "formats/clip.hpp"
#include "formats/extent.hpp"
#include "formats/quantize_job.hpp"
#include "formats/scale_rule.hpp"

namespace quantmap {
namespace {

std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

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
      round_runs(job.spec.format->element, finite.data(), job.cols, job.cols, &run, how, rounded.data());
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
      job.counts.saturated +=
          round_runs(job.spec.format->element, job.x + first, job.cols, job.cols, &run, how, out);
    }
    job.output.end(first, job.cols);
  }
}

// A tile's rows and columns (as many as there are).
struct Place {
  std::int64_t top, bottom, left, width;
};

// The scale of a tile's values under the method `mse`.
RunScale clipped(const Job& job, const Extent& extent, const Place& at, std::vector<float>& scratch) {
  const std::int64_t width = std::min(at.width, job.cols - at.left);
  const std::int64_t count = (at.bottom - at.top) * width;
  scratch.resize(static_cast<std::size_t>(2 * count));
  for (std::int64_t row = at.top; row < at.bottom; ++row)
    std::copy_n(job.x + row * job.cols + at.left, width, scratch.data() + (row - at.top) * width);
  const ScaledRow how{multiplies_by_inverse(job.spec), true};
  return clipped_scale(job.spec, extent, scratch.data(), count, scratch.data() + count,
                       [&](const RunScale& run, float* y) {
                         round_runs(job.spec.format->element, scratch.data(), count, count, &run, how, y);
                       });
}

// Scales along the row: runs of `run` columns, shared by bands of `band` rows.
void tiled(const Job& job, std::int64_t band, std::int64_t run) {
  const auto across = static_cast<std::size_t>(ceil_div(job.cols, run));
  std::vector<std::int32_t> lo(across), hi(across);
  std::vector<RunScale> runs(across);
  std::vector<float> tile;
  const ScaleRule rule = scale_rule(job.spec);
  const ScaledRow how{rule.multiply, job.decode};
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
      runs[k] = job.spec.method == Method::mse
                    ? clipped(job, extent, {top, bottom, static_cast<std::int64_t>(k) * run, run}, tile)
                    : run_scale(rule, extent);
      nonfinite |= extent.nonfinite;
      job.counts.zero_groups += runs[k].zero_group ? 1 : 0;
      if (outer) *outer++ = runs[k].scale;
    }
    for (std::int64_t row = top; row < bottom; ++row) {
      const std::int64_t first = row * job.cols;
      if (nonfinite) job.counts.nonfinite += count_nonfinite(job.x + first, job.cols);
      float* out = job.output.begin(first);
      job.counts.saturated +=
          round_runs(job.spec.format->element, job.x + first, job.cols, run, runs.data(), how, out);
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
  for (std::int64_t row = 0; row < job.rows; ++row) {
    const std::int64_t first = row * job.cols;
    const float* x = job.x + first;
    if (nonfinite) job.counts.nonfinite += count_nonfinite(x, job.cols);
    float* out = job.output.begin(first);
    job.counts.saturated += round_columns(job.spec.format->element, x, job.cols, scale.data(), lowest.data(),
                                          highest.data(), out);
    job.output.end(first, job.cols);
  }
}

}  // namespace

void quantize_scaled(const Job& job) {
  const bool clips = job.spec.method == Method::mse;
  switch (job.spec.granularity) {
    case Granularity::tensor:
      return clips ? tiled(job, job.rows, job.cols) : tensor_scaled(job);
    case Granularity::row:
      return tiled(job, 1, job.cols);
    case Granularity::group:
      return tiled(job, 1, job.spec.group);
    case Granularity::tile:
      return tiled(job, job.spec.tile_rows, job.spec.tile_cols);
    case Granularity::column:
      return clips ? tiled(job, job.rows, 1) : by_column(job);
    case Granularity::own:
      break;
  }
  throw std::logic_error("granularity of " + std::string(job.spec.format->id));
}

void quantize_cast(const Job& job) {
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

}  // namespace quantmap
