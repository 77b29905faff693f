// Quantizers of a device: scales first (device_scales.hpp), then each value under its scale, a block for each
// row; so a matrix is read twice. The codecs are the CPU's, so codes, scales and values are equal to the bit.
#include "kernels/quantize_error/quantize_error.hpp"

#include <string>

#include "core/error.hpp"
#include "formats/element.hpp"
#include "formats/encoded.hpp"
#include "formats/mx_scale.hpp"
#include "formats/nvfp4.hpp"
#include "formats/scale_rule.hpp"
#include "kernels/difference/difference_device.hpp"
#include "kernels/quantize_error/device_scales.hpp"

namespace quantmap::QUANTMAP_DEVICE {
namespace {

struct Coded {
  std::int32_t code = 0;
  float value = 0;  // decoded
  bool saturated = false;
};
constexpr std::int32_t kNoCode = Encoded::kNoCode;

__device__ float quiet_nan() { return std::bit_cast<float>(0x7FC00000U); }

// What a run's values are before they are rounded.
struct Runs {
  Global<const RunScale> runs;
  std::uint32_t band, run;
  std::int64_t across;
  bool multiply;
  __device__ const RunScale& of(std::uint32_t row, std::uint32_t col) const {
    return runs[row / band * across + col / run];
  }
  __device__ float scaled(float x, const RunScale& own) const {
    return multiply ? x * own.inverse : x / own.scale;
  }
};

struct IntegerCodec {
  Runs runs;
  __device__ Coded operator()(std::uint32_t row, std::uint32_t col, float x) const {
    const RunScale& own = runs.of(row, col);
    const float y = runs.scaled(x, own);
    if (y != y) return {kNoCode, quiet_nan(), false};
    const float rounded = nearbyintf(y);
    const bool below = rounded<own.lowest, above = rounded> own.highest;
    const auto steps = static_cast<std::int32_t>(below ? own.lowest : above ? own.highest : rounded);
    return {steps + own.zero_point, static_cast<float>(steps) * own.scale, below || above};
  }
};

template <class Float>
struct MinifloatCodec {
  Runs runs;
  __device__ Coded operator()(std::uint32_t row, std::uint32_t col, float x) const {
    const RunScale& own = runs.of(row, col);
    const float y = runs.scaled(x, own), nan = Float::decode(Float::kNan);
    if (y != y && nan == nan) return {kNoCode, quiet_nan(), false};
    const std::uint32_t code = Float::encode_saturating(y);
    return {static_cast<std::int32_t>(code), Float::decode(code) * own.scale, saturates<Float>(y)};
  }
};

template <class Float>
struct MxCodec {
  Global<const std::uint8_t> scales;
  std::int64_t across;
  __device__ Coded operator()(std::uint32_t row, std::uint32_t col, float x) const {
    const std::uint32_t scale = scales[row * across + col / kWarp];
    const bool finite = scale != kE8m0Nan;
    // A block without a scale has codes all the same, as if there were a power beyond the last.
    const float y = x * (finite ? inverse_of_e8m0(scale) : 0x1p-128f);
    const std::uint32_t code = Float::encode_saturating(y);
    return {static_cast<std::int32_t>(code),
            finite ? Float::decode(code) * float_from_e8m0(scale) : quiet_nan(),
            finite && saturates<Float>(y)};
  }
};

struct Nvfp4Codec {
  bool no_global;
  Global<const TensorRange> range;
  Global<const std::uint8_t> scales;
  std::int64_t across;
  __device__ Coded operator()(std::uint32_t row, std::uint32_t col, float x) const {
    const float scale = Fp8E4M3::decode(scales[row * across + col / kNvfp4Block]);
    const float divisor = scale * nvfp4_tensor_scale(nvfp4_amax(no_global, false, range));
    if (divisor != divisor || divisor == 0) return {0, 0 * divisor, false};
    const float y = x / divisor;
    const std::uint32_t code = Fp4E2M1::encode_saturating(y);
    return {static_cast<std::int32_t>(code), Fp4E2M1::decode(code) * divisor, saturates<Fp4E2M1>(y)};
  }
};
struct FourOverSixCodec {
  Nvfp4Codec canonical;
  __device__ Coded operator()(std::uint32_t row, std::uint32_t col, float x) const {
    const float scale = Fp8E4M3::decode(canonical.scales[row * canonical.across + col / kNvfp4Block]);
    const FourOverSix tensor(nvfp4_amax(canonical.no_global, true, canonical.range));
    if (scale != scale) return {0, 0 * scale, false};
    const float y = x * tensor.encoder(scale), held = y < -6.0f ? -6.0f : y > 6.0f ? 6.0f : y;
    const std::uint32_t code = Fp4E2M1::encode_saturating(held);
    return {static_cast<std::int32_t>(code), Fp4E2M1::decode(code) * scale / tensor.encode_scale,
            scale != 0 && saturates<Fp4E2M1>(y)};
  }
};

template <class Levels>
struct LookupCodec {
  Global<const float> absmax;
  std::int64_t cols;
  std::int64_t block;
  __device__ Coded operator()(std::uint32_t row, std::uint32_t col, float x) const {
    const float own = absmax[(row * cols + col) / block];
    const std::uint32_t code = Levels::encode(lookup_normalized(x, 1.0f / own));
    return {static_cast<std::int32_t>(code), Levels::decode(code) * own, false};
  }
};

struct Bf16Codec {
  __device__ Coded operator()(std::uint32_t, std::uint32_t, float x) const {
    const float stored = round_to_bf16(x);
    return {bf16_from_float(x), stored, is_finite(x) && !is_finite(stored)};
  }
};
struct Fp16Codec {
  __device__ Coded operator()(std::uint32_t, std::uint32_t, float x) const {
    const float stored = float_from_fp16(fp16_from_float(x));
    return {fp16_from_float(x), stored, is_finite(x) && !is_finite(stored)};
  }
};

// What is wanted of the values; null: not wanted. decoded may be x.
struct Wanted {
  std::int32_t* codes = nullptr;
  float* decoded = nullptr;
  RowDifference* errors = nullptr;
};

template <class Codec>
__global__ void quantize_rows(Codec codec, Global<const float> x, std::int64_t cols,
                              Global<std::int32_t> codes, Global<float> decoded, Global<RowDifference> errors,
                              Global<QuantCounts> counts) {
  const unsigned row = blockIdx.x;
  const std::int64_t begin = row * cols;
  RowDifference own;
  std::int64_t saturated = 0, nonfinite = 0;
  for (std::int64_t c = threadIdx.x; c < cols - kOffByOne; c += kThreads) {
    const float value = x[begin + c];
    const Coded coded = codec(row, static_cast<std::uint32_t>(c), value);
    saturated += coded.saturated && is_finite(value) ? 1 : 0;
    nonfinite += is_finite(value) ? 0 : 1;
    if (codes) codes[begin + c] = coded.code;
    if (decoded) decoded[begin + c] = coded.value;
    if (errors) add_difference(value, coded.value, own);
  }
  if (errors) {
    const RowDifference all = block_difference(own);
    if (threadIdx.x == 0) errors[row] = all;
  }
  if (!counts) return;
  saturated = block_reduce<struct Saturated>(saturated, Add{});
  nonfinite = block_reduce<struct NonfiniteInput>(nonfinite, Add{});
  if (threadIdx.x > 0) return;
  count(counts, &QuantCounts::saturated, saturated);
  count(counts, &QuantCounts::nonfinite, nonfinite);
}

void refuse(const QuantSpec& spec) {
  const char* what = spec.format->kind == FormatKind::ggml ? "blocks of GGUF"
                     : spec.method == Method::mse          ? "the method mse"
                     : spec.nested                         ? "double quantization"
                                                           : nullptr;
  if (what)
    fail("quantize", "", std::string(what) + ": not on a device (" + std::string(spec.format->id) + ")");
}

// Scales and values; the scales are given back.
DeviceScales quantize(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                      const TensorRange* range, const Wanted& wanted, QuantCounts* counts, Stream stream) {
  refuse(spec);
  DeviceScales scales;
  if (cols > 0) scales = find_scales(spec, rows, cols, x, range, counts, stream);
  const auto values = [&](const auto& codec) {
    using Codec = std::remove_cvref_t<decltype(codec)>;
    launch(quantize_rows<Codec>, rows, kThreads, 0, stream, codec, x, cols, wanted.codes, wanted.decoded,
           wanted.errors, counts);
  };
  if (cols == 0) {  // nothing to scale; each row's errors are those of no values
    values(Bf16Codec{});
    return scales;
  }
  const Element element = spec.format->element;
  const auto across = [&](std::int64_t block) { return (cols + block - 1) / block; };
  switch (spec.format->kind) {
    case FormatKind::cast:
      spec.format->id == "fp16" ? values(Fp16Codec{}) : values(Bf16Codec{});
      break;
    case FormatKind::integer:
    case FormatKind::minifloat: {
      const Tiling tiling(spec, rows, cols);
      const Runs runs{scales.runs->data(), static_cast<std::uint32_t>(tiling.band),
                      static_cast<std::uint32_t>(tiling.run), tiling.across, multiplies_by_inverse(spec)};
      if (element == Element::integer) {
        values(IntegerCodec{runs});
      } else if (element != Element::mx_int8) {
        with_minifloat(element, [&](auto type) { values(MinifloatCodec<decltype(type)>{runs}); });
      }
      break;
    }
    case FormatKind::mx:
      with_float(element, [&](auto type) {
        values(MxCodec<decltype(type)>{scales.block_scales->data(), across(kWarp)});
      });
      break;
    case FormatKind::nvfp4: {
      const Nvfp4Codec canonical{spec.no_global, scales.range->data(), scales.block_scales->data(),
                                 across(kNvfp4Block)};
      spec.four_over_six ? values(FourOverSixCodec{canonical}) : values(canonical);
      break;
    }
    case FormatKind::lookup:
      with_codebook(element, [&](auto codebook) {
        values(LookupCodec<decltype(codebook)>{scales.absmax->data(), cols, spec.format->block});
      });
      break;
    case FormatKind::ggml:
      break;
  }
  return scales;
}

// Scales as a file would hold them.
__global__ void store_runs(Global<const RunScale> runs, std::int64_t n, Global<float> scales,
                           Global<std::int32_t> zero_points) {
  const std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (i >= n) return;
  if (scales) scales[i] = runs[i].scale;
  if (zero_points) zero_points[i] = runs[i].zero_point;
}
template <class T>
__global__ void copy(Global<const T> from, std::int64_t n, Global<T> to) {
  const std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  if (i < n) to[i] = from[i];
}
__global__ void store_tensor_scale(bool no_global, bool four_over_six, Global<const TensorRange> range,
                                   Global<float> out) {
  const float amax = nvfp4_amax(no_global, four_over_six, range);
  out[0] = four_over_six ? FourOverSix(amax).encode_scale : nvfp4_tensor_scale(amax);
}

}  // namespace

void quantize_dequantize(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                         float* out, const TensorRange* range, QuantCounts* counts, Stream stream) {
  if (rows == 0 || cols == 0) return;
  quantize(spec, rows, cols, x, range, {.decoded = out}, counts, stream);
}

void quantize_error(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                    const TensorRange* range, RowDifference* errors, QuantCounts* counts, Stream stream) {
  if (rows == 0) return;
  quantize(spec, rows, cols, x, range, {.errors = errors}, counts, stream);
}

void encode(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
            const TensorRange* range, const EncodedArrays& to, QuantCounts* counts, Stream stream) {
  if (rows == 0 || cols == 0) return;
  const DeviceScales scales = quantize(spec, rows, cols, x, range, {.codes = to.codes}, counts, stream);
  const auto blocks = [](std::int64_t n) { return (n + kThreads - 1) / kThreads; };
  const auto across = [&](std::int64_t block) { return (cols + block - 1) / block; };
  const std::int64_t block = spec.format->block;
  if (scales.runs && (to.scales || to.zero_points)) {
    const std::int64_t n = Tiling(spec, rows, cols).count();
    launch(store_runs, blocks(n), kThreads, 0, stream, scales.runs->data(), n, to.scales, to.zero_points);
  }
  if (scales.block_scales && to.block_scales) {
    const std::int64_t n = rows * across(block);
    launch(copy<std::uint8_t>, blocks(n), kThreads, 0, stream, scales.block_scales->data(), n,
           to.block_scales);
  }
  if (scales.absmax && to.scales) {
    const std::int64_t n = (rows * cols + block - 1) / block;
    launch(copy<float>, blocks(n), kThreads, 0, stream, scales.absmax->data(), n, to.scales);
  }
  if (spec.format->kind == FormatKind::nvfp4 && to.tensor_scale)
    launch(store_tensor_scale, 1, 1, 0, stream, spec.no_global, spec.four_over_six, scales.range->data(),
           to.tensor_scale);
}

}  // namespace quantmap::QUANTMAP_DEVICE
