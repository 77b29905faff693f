// Formats with blocks of their own under the method `mse` (clip.hpp), a block at a time: see row_kernels.hpp.
#include <algorithm>
#include <bit>
#include <cmath>

#include "core/simd.hpp"
#include "formats/clip.hpp"
#include "formats/element.hpp"
#include "formats/extent.hpp"
#include "formats/nvfp4.hpp"
#include "formats/row_kernels.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kLongest = 256;  // values of a block with clipped scales (a registry row's at most)

float amax_of(const float* x, std::int64_t n) {
  std::int32_t lo = 0;
  std::int32_t hi = 0;
  widen_by_runs(x, n, n, &lo, &hi);
  const Extent extent = extent_of(lo, hi);
  return extent.nonfinite ? NAN : std::max(extent.max, -extent.min);
}

// What becomes of a block: the best of what was tried.
struct Trial {
  float values[kLongest];
  std::int64_t saturated = 0;
};

// Blocks of one row or of a flattened matrix. round(x, n, amax, p, trial) quantizes and decodes a block under
// amax shrunk by p; false: its scale is that of the trial before.
template <class Round>
void each_block(const float* x, std::int64_t n, std::int64_t block, float* out, QuantCounts& counts,
                Round round) {
  Trial tried, best;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t count = std::min(block, n - begin);
    const float* from = x + begin;
    const float amax = amax_of(from, count);
    if (std::isnan(amax)) {
      counts.nonfinite += count_nonfinite(from, count);
      std::fill_n(out + begin, count, NAN);
      continue;
    }
    if (amax == 0) {
      ++counts.zero_groups;
      round(from, count, amax, 1.0F, best);
    } else {
      search_clip(
          [&](float p) {
            if (!round(from, count, amax, p, tried)) return kNotTried;
            return clip_error(from, tried.values, count, amax);
          },
          [&] { best = tried; });
      counts.saturated += best.saturated;
    }
    std::copy_n(best.values, count, out + begin);
  }
}

QUANTMAP_SIMD void round_levels(Element element, const float* x, std::int64_t n, float absmax, float* out) {
  with_codebook(element, [&](auto codebook) QUANTMAP_INLINE_LAMBDA {
    const float inverse = 1.0F / absmax;
    QUANTMAP_ELEMENTWISE
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = decltype(codebook)::round(lookup_normalized(x[i], inverse)) * absmax;
  });
}

}  // namespace

void round_mx_clipped(Element element, const float* x, std::int64_t n, MxScaleRule rule, float* out,
                      QuantCounts& counts) {
  const MxElement rules = with_float(element, [](auto type) { return kMxElement<decltype(type)>; });
  std::uint32_t last = kE8m0Nan;
  each_block(
      x, n, 32, out, counts, [&](const float* block, std::int64_t count, float amax, float p, Trial& trial) {
        const std::uint32_t code = mx_scale_code(std::bit_cast<std::uint32_t>(p * amax), rule, rules);
        if (p < 1 && code == last) return false;
        last = code;
        RunScale run;
        run.scale = float_from_e8m0(code);
        run.inverse = inverse_of_e8m0(code);
        trial.saturated = round_runs(element, block, count, count, &run, {.multiply = true}, trial.values);
        return true;
      });
}

void round_nvfp4_clipped(const float* x, std::int64_t n, float g, bool decode, float* out,
                         QuantCounts& counts) {
  std::uint32_t last = 0;
  float scales[2] = {};  // of the last trial and of the best
  Trial tried, best;
  for (std::int64_t begin = 0; begin < n; begin += kNvfp4Block) {
    const std::int64_t count = std::min(kNvfp4Block, n - begin);
    const float* from = x + begin;
    const float amax = amax_of(from, count);
    if (std::isnan(amax)) {
      counts.nonfinite += count_nonfinite(from, count);
      std::fill_n(out + begin, count, NAN);
      continue;
    }
    const float widest = Fp8E4M3::decode(nvfp4_block_scale(amax, g));
    if (widest * g == 0) {
      ++(amax == 0 ? counts.zero_groups : counts.underflow_blocks);
      std::fill_n(out + begin, count, 0.0F);
      continue;
    }
    search_clip(
        [&](float p) {
          const std::uint32_t code = nvfp4_block_scale(p * amax, g);
          if (p < 1 && code == last) return kNotTried;
          last = code;
          scales[0] = Fp8E4M3::decode(code);
          RunScale run;
          run.scale = scales[0] * g;
          if (run.scale == 0) return kNotTried;
          tried.saturated = round_runs(Element::e2m1, from, count, count, &run, {}, tried.values);
          return clip_error(from, tried.values, count, amax);
        },
        [&] {
          best = tried;
          scales[1] = scales[0];
        });
    counts.saturated += best.saturated;
    if (!decode) {
      RunScale run;
      run.scale = scales[1] * g;
      round_runs(Element::e2m1, from, count, count, &run, {.decode = false}, best.values);
      for (std::int64_t i = 0; i < count; ++i) best.values[i] *= scales[1];
    }
    std::copy_n(best.values, count, out + begin);
  }
}

void round_lookup_clipped(Element element, std::int64_t block, const float* x, std::int64_t n, float* out,
                          QuantCounts& counts) {
  each_block(x, n, block, out, counts,
             [&](const float* values, std::int64_t count, float amax, float p, Trial& trial) {
               round_levels(element, values, count, p * amax, trial.values);
               return true;
             });
}

}  // namespace quantmap
