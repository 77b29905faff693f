// The clipped range that leaves the least error: method `mse` (formats.md, section 9; GPTQ's
// Quantizer(mse=True) by Frantar et al., IST-DASLab/gptq quant.py). For each scale the range of its values is
// shrunk by p = 1 - i/100, i = 0..79, from the widest on; the scale that follows, rounded as it is stored,
// quantizes; the least sum |q(x) - x|^2.4 wins, the wider range where two are equal. A range whose stored
// scale is that of the one before is not tried again.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "formats/run_scale.hpp"

namespace quantmap {

inline constexpr int kClipSteps = 80;

// fl(1 - i/100), as torch's float32 tensor times a Python number.
constexpr float clip_factor(int step) { return static_cast<float>(1.0 - step / 100.0); }

// sum |y - x|^2.4 in units of a power of two next to amax (> 0, finite), which does not change what is less.
// Each power within 1e-6 of itself, the sum in double; the same bits on every machine.
double clip_error(const float* x, const float* y, std::int64_t n, float amax);

inline constexpr double kNotTried = std::numeric_limits<double>::infinity();

// attempt(p): quantizes under the range shrunk by p and returns the error, or kNotTried. keep(): what was
// attempted last is the best so far. The first attempt, p = 1, is always kept.
template <class Attempt, class Keep>
void search_clip(Attempt attempt, Keep keep) {
  double least = attempt(1.0F);
  keep();
  for (int step = 1; step < kClipSteps; ++step) {
    const double error = attempt(clip_factor(step));
    if (error < least) {
      least = error;
      keep();
    }
  }
}

// Integers and small floats: the scale of n values x. round(run, y) quantizes and decodes them; y: [n],
// scratch.
template <class Round>
RunScale clipped_scale(const QuantSpec& spec, const Extent& extent, const float* x, std::int64_t n, float* y,
                       Round round) {
  RunScale best = run_scale(spec, extent);
  if (best.zero_group || std::isnan(best.scale)) return best;
  const float amax = extent.max > -extent.min ? extent.max : -extent.min;
  RunScale tried = best;
  search_clip(
      [&](float p) {
        const RunScale run = run_scale(spec, {p * extent.min, p * extent.max});
        const bool same = run.scale == tried.scale && run.zero_point == tried.zero_point;
        if (run.zero_group || (same && p < 1)) return kNotTried;
        tried = run;
        round(run, y);
        return clip_error(x, y, n, amax);
      },
      [&] { best = tried; });
  return best;
}

}  // namespace quantmap
