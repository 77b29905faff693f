// Integers and small floats with a scale per granularity (formats.md, sections 2 and 7).
#include <limits>
#include <vector>

#include "formats/clip.hpp"
#include "formats/encoded_kinds.hpp"
#include "formats/tiling.hpp"

namespace quantmap {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Extent extent_of_range(const TensorRange& range) { return {range.min, range.max, range.nonfinite > 0}; }

std::vector<float> values_of(const Encoded& e, const Tiling& tiling, std::size_t tile, const float* x) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < e.rows * e.cols; ++i) {
    if (tiling.index(i / e.cols, i % e.cols) == static_cast<std::int64_t>(tile)) values.push_back(x[i]);
  }
  return values;
}

// The scale of a tile's values under the method `mse`.
RunScale clipped(const Encoded& e, const FloatCodec& codec, const Extent& extent,
                 const std::vector<float>& x) {
  std::vector<float> y(x.size());
  const auto round = [&](const RunScale& run, float* decoded) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float scaled = multiplies_by_inverse(e.spec) ? x[i] * run.inverse : x[i] / run.scale;
      const float code = codec.encode ? codec.decode(codec.encode(scaled))
                                      : std::clamp(std::nearbyint(scaled), run.lowest, run.highest);
      decoded[i] = code * run.scale;
    }
  };
  return clipped_scale(e.spec, extent, x.data(), static_cast<std::int64_t>(x.size()), y.data(), round);
}

}  // namespace

void encode_scaled(Encoded& e, const float* x, const TensorRange* range) {
  const QuantSpec& spec = e.spec;
  const bool integer = spec.format->kind == FormatKind::integer;
  const Tiling tiling(spec, e.rows, e.cols);
  std::vector<Extent> extents(static_cast<std::size_t>(tiling.count()));
  for (std::int64_t i = 0; i < e.rows * e.cols; ++i) {
    if (!std::isfinite(x[i])) ++e.counts.nonfinite;
    widen(extents[static_cast<std::size_t>(tiling.index(i / e.cols, i % e.cols))], x[i]);
  }
  if (spec.granularity == Granularity::tensor && spec.method != Method::mse && range)
    extents[0] = extent_of_range(*range);

  const FloatCodec codec = integer ? FloatCodec{} : codec_of(*spec.format);
  std::vector<RunScale> runs;
  for (std::size_t tile = 0; tile < extents.size(); ++tile) {
    runs.push_back(spec.method == Method::mse
                       ? clipped(e, codec, extents[tile], values_of(e, tiling, tile, x))
                       : run_scale(spec, extents[tile]));
    e.scales.push_back(runs.back().scale);
    if (spec.asymmetric) e.zero_points.push_back(runs.back().zero_point);
    e.counts.zero_groups += runs.back().zero_group ? 1 : 0;
  }
  const bool multiply = multiplies_by_inverse(spec);
  for (std::int64_t i = 0; i < e.rows * e.cols; ++i) {
    const RunScale& run = runs[static_cast<std::size_t>(tiling.index(i / e.cols, i % e.cols))];
    const float y = multiply ? x[i] * run.inverse : x[i] / run.scale;
    std::int32_t& code = e.codes[static_cast<std::size_t>(i)];
    bool clamped = false;
    if (std::isnan(y) && (integer || !codec.has_nan)) {
      code = Encoded::kNoCode;
    } else if (!integer) {
      code = static_cast<std::int32_t>(codec.encode(y));
      clamped = saturates(codec, y);
    } else {
      const float rounded = std::nearbyint(y);
      clamped = rounded < run.lowest || rounded > run.highest;
      code = static_cast<std::int32_t>(std::clamp(rounded, run.lowest, run.highest)) + run.zero_point;
    }
    if (clamped && std::isfinite(x[i])) ++e.counts.saturated;
  }
}

void decode_scaled(const Encoded& e, float* out) {
  const bool integer = e.spec.format->kind == FormatKind::integer;
  const FloatCodec codec = integer ? FloatCodec{} : codec_of(*e.spec.format);
  const Tiling tiling(e.spec, e.rows, e.cols);
  for (std::int64_t i = 0; i < e.rows * e.cols; ++i) {
    const auto tile = static_cast<std::size_t>(tiling.index(i / e.cols, i % e.cols));
    const std::int32_t code = e.codes[static_cast<std::size_t>(i)];
    if (code == Encoded::kNoCode) {
      out[i] = kNan;
    } else if (integer) {
      const std::int32_t zero = e.spec.asymmetric ? e.zero_points[tile] : 0;
      out[i] = static_cast<float>(code - zero) * e.scales[tile];
    } else {
      out[i] = codec.decode(static_cast<std::uint32_t>(code)) * e.scales[tile];
    }
  }
}

}  // namespace quantmap
