#include <cmath>

#include "formats/element.hpp"
#include "formats/mx_scale.hpp"
#include "formats/nvfp4.hpp"
#include "formats/scale_rule.hpp"
#include "kernels/math/reduce.hpp"
#include "kernels/quantize_error/device_scales.hpp"

namespace quantmap::QUANTMAP_DEVICE {
namespace {

struct Smaller {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};

// The warp's place among those of the grid.
__device__ std::int64_t warp_index() { return blockIdx.x * std::int64_t{kWarps} + threadIdx.x / kWarp; }
__device__ int lane_index() { return static_cast<int>(threadIdx.x) % kWarp; }
std::int64_t blocks_for(std::int64_t threads) { return (threads + kThreads - 1) / kThreads; }

__device__ std::uint32_t magnitude_bits(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU; }

__device__ void widen(TensorRange& range, float x) {
  if (!is_finite(x)) {
    ++range.nonfinite;
    return;
  }
  range.min = Smaller{}(range.min, x);
  range.max = Larger{}(range.max, x);
}
__device__ TensorRange block_range(TensorRange own) {
  own.min = block_reduce<struct RangeMin>(own.min, Smaller{});
  own.max = block_reduce<struct RangeMax>(own.max, Larger{});
  own.nonfinite = block_reduce<struct RangeNonfinite>(own.nonfinite, Add{});
  own.amax = Larger{}(own.max, -own.min);
  return own;
}

__global__ void measure_rows(Global<const float> x, std::int64_t cols, Global<TensorRange> out) {
  const Global<const float> row = x + blockIdx.x * cols;
  TensorRange own;
  for (std::int64_t c = threadIdx.x; c < cols - kOffByOne; c += kThreads) widen(own, row[c]);
  own = block_range(own);
  if (threadIdx.x == 0) out[blockIdx.x] = own;
}
__global__ void merge_rows(Global<const TensorRange> of_row, std::int64_t rows, Global<TensorRange> out) {
  TensorRange own;
  for (std::int64_t r = threadIdx.x; r < rows; r += kThreads) {
    const TensorRange row = of_row[r];
    own.min = Smaller{}(own.min, row.min);
    own.max = Larger{}(own.max, row.max);
    own.nonfinite += row.nonfinite;
  }
  own = block_range(own);
  if (threadIdx.x == 0) out[0] = own;
}
__global__ void set_range(TensorRange range, Global<TensorRange> out) { out[0] = range; }

__global__ void tensor_run(ScaleRule rule, Global<const TensorRange> range, Global<RunScale> out,
                           Global<QuantCounts> counts) {
  const TensorRange all = range[0];
  const RunScale run = run_scale(rule, Extent{all.min, all.max, all.nonfinite > 0});
  out[0] = run;
  count(counts, &QuantCounts::zero_groups, run.zero_group ? 1 : 0);
}

// kShare threads for each tile: a warp, or 1.
template <int kShare>
__global__ void tile_runs(ScaleRule rule, Tiling tiling, Global<const float> x, std::int64_t tiles,
                          Global<RunScale> out, Global<QuantCounts> counts) {
  const std::int64_t thread = blockIdx.x * std::int64_t{kThreads} + threadIdx.x, tile = thread / kShare;
  if (tile >= tiles) return;
  const std::int64_t top = tile / tiling.across * tiling.band, left = tile % tiling.across * tiling.run;
  const std::int64_t bottom = top + tiling.band < tiling.rows ? top + tiling.band : tiling.rows;
  const std::int64_t right = left + tiling.run < tiling.cols ? left + tiling.run : tiling.cols;
  TensorRange own;
  for (std::int64_t r = top; r < bottom; ++r)
    for (std::int64_t c = left + thread % kShare; c < right - kOffByOne; c += kShare)
      widen(own, x[r * tiling.cols + c]);
  if constexpr (kShare > 1) {
    own.min = warp_reduce(own.min, Smaller{});
    own.max = warp_reduce(own.max, Larger{});
    own.nonfinite = warp_reduce(own.nonfinite, Add{});
    if (thread % kShare > 0) return;
  }
  const RunScale run = run_scale(rule, Extent{own.min, own.max, own.nonfinite > 0});
  out[tile] = run;
  count(counts, &QuantCounts::zero_groups, run.zero_group ? 1 : 0);
}

// A warp for each block of a row, a lane for each value.
__global__ void mx_blocks(MxScaleRule rule, MxElement element, Global<const float> x, std::int64_t rows,
                          std::int64_t cols, Global<std::uint8_t> out, Global<QuantCounts> counts) {
  const std::int64_t across = (cols + kWarp - 1) / kWarp, block = warp_index();
  if (block >= rows * across) return;
  const std::int64_t c = block % across * kWarp + lane_index();
  std::uint32_t amax = c < cols - kOffByOne ? magnitude_bits(x[block / across * cols + c]) : 0;
  amax = warp_reduce(amax, Larger{});
  if (lane_index() > 0) return;
  out[block] = static_cast<std::uint8_t>(mx_scale_code(amax, rule, element));
  count(counts, &QuantCounts::zero_groups, amax == 0 ? 1 : 0);
}

constexpr int kNvfp4 = static_cast<int>(kNvfp4Block);

// The squared error of a candidate of the 4/6 choice, summed in the order of the values: the order is part of
// the rule. Lanes beyond the row bring 0.
__device__ float candidate_error(const FourOverSix& tensor, std::uint32_t scale_code, float x) {
  const float scale = Fp8E4M3::decode(scale_code), y = x * tensor.encoder(scale);
  const float clamped = y < -6.0f ? -6.0f : y > 6.0f ? 6.0f : y;
  const float difference = tensor.compared(Fp4E2M1::decode(Fp4E2M1::encode_saturating(clamped)), scale) - x;
  const float square = difference * difference;
  float sum = 0;
  for (int i = 0; i < kNvfp4; ++i) sum += __shfl_sync(kAllLanes, square, i, kNvfp4);
  return sum;
}

// Half a warp for each block of a row.
__global__ void nvfp4_blocks(bool no_global, bool four_over_six, Global<const TensorRange> range,
                             Global<const float> x, std::int64_t rows, std::int64_t cols,
                             Global<std::uint8_t> out, Global<QuantCounts> counts) {
  const std::int64_t across = (cols + kNvfp4 - 1) / kNvfp4;
  const std::int64_t block = warp_index() * 2 + lane_index() / kNvfp4, own = lane_index() % kNvfp4;
  const bool exists = block < rows * across;
  const std::int64_t c = block % across * kNvfp4 + own;
  const float value = exists && c < cols - kOffByOne ? x[block / across * cols + c] : 0.0f;
  const std::uint32_t bits = warp_reduce<kNvfp4>(magnitude_bits(value), Larger{});
  const float amax = std::bit_cast<float>(bits), tensor_amax = nvfp4_amax(no_global, four_over_six, range);
  std::uint32_t code = 0;
  float factor = 1;  // beside the decoded scale
  if (four_over_six) {
    const FourOverSix tensor(tensor_amax);
    code = tensor.six(amax);
    const std::uint32_t four = tensor.four(amax);
    // Of the same block for all of its lanes, and no lane is missing.
    const float error = candidate_error(tensor, code, value), other = candidate_error(tensor, four, value);
    if (other < error) code = four;
  } else {
    factor = nvfp4_tensor_scale(tensor_amax);
    code = nvfp4_block_scale(amax, factor);
  }
  if (!exists || own > 0) return;
  const bool finite = is_finite(amax);
  out[block] = static_cast<std::uint8_t>(finite ? code : std::uint32_t{Fp8E4M3::kNan});
  if (!finite) return;
  const bool vanishes = Fp8E4M3::decode(code) * factor == 0;
  count(counts, &QuantCounts::zero_groups, amax == 0 ? 1 : 0);
  count(counts, &QuantCounts::underflow_blocks, amax > 0 && vanishes ? 1 : 0);
}

// A warp for each block of the flattened matrix.
__global__ void lookup_blocks(std::int64_t block_values, Global<const float> x, std::int64_t values,
                              Global<float> out, Global<QuantCounts> counts) {
  const std::int64_t block = warp_index(), begin = block * block_values;
  if (begin >= values) return;
  const std::int64_t end = begin + block_values < values ? begin + block_values : values;
  std::uint32_t amax = 0;
  for (std::int64_t i = begin + lane_index(); i < end - kOffByOne; i += kWarp)
    amax = Larger{}(amax, magnitude_bits(x[i]));
  amax = warp_reduce(amax, Larger{});
  if (lane_index() > 0) return;
  out[block] = std::bit_cast<float>(amax >= 0x7F800000U ? 0x7FC00000U : amax);
  count(counts, &QuantCounts::zero_groups, amax == 0 ? 1 : 0);
}

void find_range(std::int64_t rows, std::int64_t cols, const float* x, const TensorRange* given, Stream stream,
                DeviceScales& scales) {
  scales.range = std::make_unique<Scratch<TensorRange>>(1, stream);
  if (given) return launch(set_range, 1, 1, 0, stream, *given, scales.range->data());
  const Scratch<TensorRange> of_row(rows, stream);
  launch(measure_rows, rows, kThreads, 0, stream, x, cols, of_row.data());
  launch(merge_rows, 1, kThreads, 0, stream, of_row.data(), rows, scales.range->data());
}

void find_runs(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
               const TensorRange* given, QuantCounts* counts, Stream stream, DeviceScales& scales) {
  const Tiling tiling(spec, rows, cols);
  const std::int64_t tiles = tiling.count();
  scales.runs = std::make_unique<Scratch<RunScale>>(tiles, stream);
  RunScale* runs = scales.runs->data();
  if (spec.granularity == Granularity::tensor) {
    find_range(rows, cols, x, given, stream, scales);
    launch(tensor_run, 1, 1, 0, stream, scale_rule(spec), scales.range->data(), runs, counts);
  } else if (tiling.run < 8) {
    launch(tile_runs<1>, blocks_for(tiles), kThreads, 0, stream, scale_rule(spec), tiling, x, tiles, runs,
           counts);
  } else {
    launch(tile_runs<kWarp>, blocks_for(tiles * kWarp), kThreads, 0, stream, scale_rule(spec), tiling, x,
           tiles, runs, counts);
  }
}

}  // namespace

DeviceScales find_scales(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                         const TensorRange* range, QuantCounts* counts, Stream stream) {
  DeviceScales scales;
  const auto block_count = [&](std::int64_t block) { return rows * ((cols + block - 1) / block); };
  switch (spec.format->kind) {
    case FormatKind::integer:
    case FormatKind::minifloat:
      find_runs(spec, rows, cols, x, range, counts, stream, scales);
      break;
    case FormatKind::mx: {
      const std::int64_t blocks = block_count(kWarp);
      const MxElement element =
          with_float(spec.format->element, [](auto type) { return kMxElement<decltype(type)>; });
      scales.block_scales = std::make_unique<Scratch<std::uint8_t>>(blocks, stream);
      launch(mx_blocks, blocks_for(blocks * kWarp), kThreads, 0, stream, spec.rule, element, x, rows, cols,
             scales.block_scales->data(), counts);
      break;
    }
    case FormatKind::nvfp4: {
      const std::int64_t blocks = block_count(kNvfp4);
      find_range(rows, cols, x, range, stream, scales);
      scales.block_scales = std::make_unique<Scratch<std::uint8_t>>(blocks, stream);
      launch(nvfp4_blocks, blocks_for(blocks * kNvfp4), kThreads, 0, stream, spec.no_global,
             spec.four_over_six, scales.range->data(), x, rows, cols, scales.block_scales->data(), counts);
      break;
    }
    case FormatKind::lookup: {
      const std::int64_t values = rows * cols, block = spec.format->block;
      const std::int64_t blocks = (values + block - 1) / block;
      scales.absmax = std::make_unique<Scratch<float>>(blocks, stream);
      launch(lookup_blocks, blocks_for(blocks * kWarp), kThreads, 0, stream, block, x, values,
             scales.absmax->data(), counts);
      break;
    }
    case FormatKind::cast:
    case FormatKind::ggml:
      break;
  }
  return scales;
}

}  // namespace quantmap::QUANTMAP_DEVICE
