// The scales of a matrix, in device memory: the first of the two passes of a quantizer on a device. What
// shares a scale is read by a warp (or by one thread, where that is a few values).
#pragma once

#include <cmath>
#include <memory>

#include "formats/nvfp4.hpp"
#include "formats/quantize.hpp"
#include "formats/run_scale.hpp"
#include "formats/tiling.hpp"
#include "kernels/math/reduce.hpp"

namespace quantmap::QUANTMAP_DEVICE {

// One of these by the format's kind; the other pointers are null.
struct DeviceScales {
  std::unique_ptr<Scratch<TensorRange>> range;          // one; integers and FP8 by tensor, nvfp4
  std::unique_ptr<Scratch<RunScale>> runs;              // integers, small floats
  std::unique_ptr<Scratch<std::uint8_t>> block_scales;  // MX: E8M0; nvfp4: E4M3
  std::unique_ptr<Scratch<float>> absmax;               // tables of levels
};

// `range`: in the host's memory. zero_groups and underflow_blocks are added to `counts`.
DeviceScales find_scales(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                         const TensorRange* range, QuantCounts* counts, Stream stream);

__device__ inline void count(Global<QuantCounts> counts, std::int64_t QuantCounts::*which, std::int64_t n) {
  if (n > 0 && counts)
    atomicAdd(reinterpret_cast<unsigned long long*>(&(counts[0].*which)), static_cast<unsigned long long>(n));
}

// What nvfp4 takes from the tensor.
__device__ inline float nvfp4_amax(bool no_global, bool four_over_six, Global<const TensorRange> range) {
  return no_global ? nvfp4_unit_amax(four_over_six) : range[0].amax;
}

// A value rounded to the grid continued without end lies beyond the largest number (round first, then
// compare).
template <class Float>
__device__ bool saturates(float y) {
  if (!is_finite(y)) return y == y;
  const float size = fabsf(y);
  return Float::round_magnitude(size < 2 * Float::kMax ? size : 2 * Float::kMax) > Float::kMax;
}

}  // namespace quantmap::QUANTMAP_DEVICE
