#include "formats/encoded.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "formats/bf16.hpp"
#include "formats/extent.hpp"
#include "formats/fp16.hpp"
#include "formats/fp8_e5m2.hpp"
#include "formats/ggml_encode.hpp"
#include "formats/ggml_rows.hpp"
#include "formats/mx_scale.hpp"
#include "formats/nf4.hpp"
#include "formats/nvfp4.hpp"

namespace quantmap {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

// Which scale a value belongs to: the tiles (band x run) that share one.
struct Tiling {
  std::int64_t band, run, across;
  Tiling(const QuantSpec& spec, std::int64_t rows, std::int64_t cols) : band(1), run(cols) {
    switch (spec.granularity) {
      case Granularity::tensor:
        band = rows;
        break;
      case Granularity::column:
        band = rows, run = 1;
        break;
      case Granularity::group:
        run = spec.group;
        break;
      case Granularity::tile:
        band = spec.tile_rows, run = spec.tile_cols;
        break;
      case Granularity::row:
      case Granularity::own:
        break;
    }
    across = ceil_div(cols, run);
  }
  std::int64_t index(std::int64_t row, std::int64_t col) const { return row / band * across + col / run; }
};

Extent extent_of_range(const TensorRange& range) { return {range.min, range.max, range.nonfinite > 0}; }

void widen(Extent& extent, float x) {
  if (!std::isfinite(x)) {
    extent.nonfinite = true;
    return;
  }
  extent.min = std::min(extent.min, x);
  extent.max = std::max(extent.max, x);
}

// The saturating codecs of FP8, by the registry's id.
struct FloatCodec {
  std::uint32_t (*encode)(float);
  float (*decode)(std::uint32_t);
  std::uint32_t max_code;
  std::uint32_t magnitude_mask;
  float (*round)(float);
};
template <class Float>
FloatCodec codec_of() {
  return {[](float x) { return Float::encode_saturating(x); },
          [](std::uint32_t c) { return Float::decode(c); }, Float::kMaxCode, Float::kAllOnes,
          [](float x) { return Float::round_magnitude(x); }};
}
FloatCodec codec_of(const Format& format) {
  if (format.id == "fp8_e4m3" || format.id == "mxfp8_e4m3") return codec_of<Fp8E4M3>();
  if (format.id == "fp8_e5m2") return codec_of<Fp8E5M2>();
  if (format.id == "mxfp4" || format.id == "nvfp4") return codec_of<Fp4E2M1>();
  throw std::logic_error("no codec for " + std::string(format.id));
}

// Round first, then compare: whether y ends beyond the largest number.
bool saturates(const FloatCodec& codec, float y) {
  const float largest = codec.decode(codec.max_code);
  return std::isfinite(y) ? codec.round(std::min(std::abs(y), 2 * largest)) > largest : !std::isnan(y);
}

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

void encode_scaled(Encoded& e, const float* x, const TensorRange* range) {
  const QuantSpec& spec = e.spec;
  const bool integer = spec.format->kind == FormatKind::integer;
  const Tiling tiling(spec, e.rows, e.cols);
  std::vector<Extent> extents(static_cast<std::size_t>(ceil_div(e.rows, tiling.band) * tiling.across));
  for (std::int64_t i = 0; i < e.rows * e.cols; ++i) {
    if (!std::isfinite(x[i])) ++e.counts.nonfinite;
    widen(extents[static_cast<std::size_t>(tiling.index(i / e.cols, i % e.cols))], x[i]);
  }
  if (spec.granularity == Granularity::tensor && range) extents[0] = extent_of_range(*range);

  std::vector<RunScale> runs;
  for (const Extent& extent : extents) {
    runs.push_back(run_scale(spec, extent));
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
    if (!integer) {
      const FloatCodec codec = codec_of(*spec.format);
      code = static_cast<std::int32_t>(codec.encode(y));
      clamped = saturates(codec, y);
    } else if (std::isnan(y)) {
      code = Encoded::kNoCode;
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
  const Tiling tiling(e.spec, e.rows, e.cols);
  for (std::int64_t i = 0; i < e.rows * e.cols; ++i) {
    const auto tile = static_cast<std::size_t>(tiling.index(i / e.cols, i % e.cols));
    const std::int32_t code = e.codes[static_cast<std::size_t>(i)];
    if (integer) {
      const std::int32_t zero = e.spec.asymmetric ? e.zero_points[tile] : 0;
      out[i] = code == Encoded::kNoCode ? kNan : static_cast<float>(code - zero) * e.scales[tile];
    } else {
      out[i] = codec_of(*e.spec.format).decode(static_cast<std::uint32_t>(code)) * e.scales[tile];
    }
  }
}

// Calls body(first index, values in the block) for each block of each row.
template <class Body>
void each_block(const Encoded& e, Body body) {
  for (std::int64_t row = 0; row < e.rows; ++row) {
    for (std::int64_t col = 0; col < e.cols; col += e.spec.format->block) {
      body(row * e.cols + col, std::min<std::int64_t>(e.spec.format->block, e.cols - col));
    }
  }
}

Extent block_extent(const float* x, std::int64_t count) {
  Extent extent;
  for (std::int64_t i = 0; i < count; ++i) widen(extent, x[i]);
  return extent;
}

std::int64_t nonfinite_in(const float* x, std::int64_t count) {
  return std::count_if(x, x + count, [](float value) { return !std::isfinite(value); });
}

void encode_mx(Encoded& e, const float* x) {
  const FloatCodec codec = codec_of(*e.spec.format);
  const MxElement& element = e.spec.format->bits == 8 ? kMxE4M3 : kMxE2M1;
  each_block(e, [&](std::int64_t first, std::int64_t count) {
    const Extent extent = block_extent(x + first, count);
    const float amax = extent.nonfinite ? kNan : std::max(extent.max, -extent.min);
    const std::uint32_t scale = mx_scale_code(std::bit_cast<std::uint32_t>(amax), e.spec.rule, element);
    e.block_scales.push_back(static_cast<std::uint8_t>(scale));
    e.counts.zero_groups += amax == 0 ? 1 : 0;
    e.counts.nonfinite += nonfinite_in(x + first, count);
    for (std::int64_t i = first; i < first + count; ++i) {
      const float y = std::ldexp(x[i], 127 - static_cast<int>(scale));
      e.codes[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(codec.encode(y));
      if (scale != kE8m0Nan && saturates(codec, y)) ++e.counts.saturated;
    }
  });
}

void decode_mx(const Encoded& e, float* out) {
  const FloatCodec codec = codec_of(*e.spec.format);
  std::size_t block = 0;
  each_block(e, [&](std::int64_t first, std::int64_t count) {
    const int scale = e.block_scales[block++];
    for (std::int64_t i = first; i < first + count; ++i) {
      const float code = codec.decode(static_cast<std::uint32_t>(e.codes[static_cast<std::size_t>(i)]));
      out[i] = scale == static_cast<int>(kE8m0Nan) ? kNan : std::ldexp(code, scale - 127);
    }
  });
}

// One block of codes, x * encoder or x / divisor under an E4M3 scale.
struct Candidate {
  std::uint32_t scale_code;
  float scale;
  std::int32_t codes[kNvfp4Block] = {};
  std::int64_t saturated = 0;
  float error = 0;
};

Candidate four_over_six_candidate(const FourOverSix& tensor, std::uint32_t scale_code, const float* x,
                                  std::int64_t count) {
  Candidate result{scale_code, Fp8E4M3::decode(scale_code)};
  const FloatCodec codec = codec_of<Fp4E2M1>();
  const float encoder = tensor.encoder(result.scale);
  for (std::int64_t i = 0; i < count; ++i) {
    const float y = x[i] * encoder;
    result.codes[i] = static_cast<std::int32_t>(codec.encode(std::clamp(y, -6.0F, 6.0F)));
    result.saturated += saturates(codec, y) ? 1 : 0;
    const float q = codec.decode(static_cast<std::uint32_t>(result.codes[i]));
    const float difference = tensor.compared(q, result.scale) - x[i];
    result.error += difference * difference;
  }
  return result;
}

Candidate canonical_candidate(float g, std::uint32_t scale_code, const float* x, std::int64_t count) {
  Candidate result{scale_code, Fp8E4M3::decode(scale_code)};
  const FloatCodec codec = codec_of<Fp4E2M1>();
  const float divisor = result.scale * g;
  for (std::int64_t i = 0; i < count && divisor != 0; ++i) {
    result.codes[i] = static_cast<std::int32_t>(codec.encode(x[i] / divisor));
    result.saturated += saturates(codec, x[i] / divisor) ? 1 : 0;
  }
  return result;
}

void encode_nvfp4(Encoded& e, const float* x, const TensorRange& range) {
  const float amax = e.spec.no_global ? nvfp4_unit_amax(e.spec.four_over_six) : range.amax;
  const FourOverSix tensor(amax);
  e.tensor_scale = e.spec.four_over_six ? tensor.encode_scale : nvfp4_tensor_scale(amax);
  each_block(e, [&](std::int64_t first, std::int64_t count) {
    const Extent extent = block_extent(x + first, count);
    if (extent.nonfinite) {
      e.counts.nonfinite += nonfinite_in(x + first, count);
      e.block_scales.push_back(static_cast<std::uint8_t>(Fp8E4M3::kNan));
      return;
    }
    const float block_amax = std::max(extent.max, -extent.min);
    Candidate chosen{};
    if (e.spec.four_over_six) {
      chosen = four_over_six_candidate(tensor, tensor.six(block_amax), x + first, count);
      const Candidate four = four_over_six_candidate(tensor, tensor.four(block_amax), x + first, count);
      if (four.error < chosen.error) chosen = four;
    } else {
      chosen = canonical_candidate(e.tensor_scale, nvfp4_block_scale(block_amax, e.tensor_scale), x + first,
                                   count);
    }
    std::copy_n(chosen.codes, count, e.codes.begin() + first);
    e.block_scales.push_back(static_cast<std::uint8_t>(chosen.scale_code));
    const bool vanishes = e.spec.four_over_six ? chosen.scale == 0 : chosen.scale * e.tensor_scale == 0;
    if (block_amax == 0) {
      ++e.counts.zero_groups;
    } else if (vanishes) {
      ++e.counts.underflow_blocks;
    } else {
      e.counts.saturated += chosen.saturated;
    }
  });
}

void decode_nvfp4(const Encoded& e, float* out) {
  std::size_t block = 0;
  each_block(e, [&](std::int64_t first, std::int64_t count) {
    const float scale = Fp8E4M3::decode(e.block_scales[block++]);
    for (std::int64_t i = first; i < first + count; ++i) {
      const float code = Fp4E2M1::decode(static_cast<std::uint32_t>(e.codes[static_cast<std::size_t>(i)]));
      out[i] = e.spec.four_over_six ? code * scale / e.tensor_scale : code * (scale * e.tensor_scale);
    }
  });
}

void encode_nf4(Encoded& e, const float* x) {
  const std::int64_t values = e.rows * e.cols;
  for (std::int64_t first = 0; first < values; first += kNf4Block) {
    const std::int64_t count = std::min(kNf4Block, values - first);
    const Extent extent = block_extent(x + first, count);
    const float absmax = extent.nonfinite ? kNan : std::max(extent.max, -extent.min);
    e.scales.push_back(absmax);
    e.counts.zero_groups += absmax == 0 ? 1 : 0;
    e.counts.nonfinite += nonfinite_in(x + first, count);
    for (std::int64_t i = first; i < first + count; ++i) {
      e.codes[static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(nf4_encode(nf4_normalized(x[i], 1.0F / absmax)));
    }
  }
  if (e.spec.nested) {
    NestedAbsmax nested = nest_absmax(e.scales);
    e.absmax_codes = std::move(nested.codes);
    e.nested_absmax = std::move(nested.nested);
    e.nested_offset = nested.offset;
    e.scales = std::move(nested.decoded);
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

}  // namespace

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
      encode_nf4(e, x);
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
      for (std::size_t i = 0; i < e.codes.size(); ++i) {
        const auto bits = static_cast<std::uint16_t>(e.codes[i]);
        out[i] = e.spec.format->id == "fp16" ? float_from_fp16(bits) : float_from_bf16(bits);
      }
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
      for (std::size_t i = 0; i < e.codes.size(); ++i) {
        out[i] = kNf4Levels[static_cast<std::size_t>(e.codes[i])] * e.scales[i / kNf4Block];
      }
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
