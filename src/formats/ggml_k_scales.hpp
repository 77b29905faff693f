// The scales of a super-block's sub-blocks as the file holds them: codes times one FP16 number.
#pragma once

#include <cstdint>

#include "formats/ggml_layout.hpp"

namespace quantmap::ggml {

struct CodedScales {
  int scale[16] = {}, min[16] = {};
  std::uint16_t d_bits = 0, min_bits = 0;  // FP16
  float d = 0, dmin = 0;                   // as decoded
  bool empty = false;                      // all scales are (next to) 0

  QUANTMAP_INLINE float step(int part) const { return d * static_cast<float>(scale[part]); }
  QUANTMAP_INLINE float offset(int part) const { return dmin * static_cast<float>(min[part]); }
};

// Q2_K, Q4_K, Q5_K: the largest scale gets the code `highest` (15, 63), and so does the largest minimum.
CodedScales code_scales_and_minima(const float* scales, const float* mins, int parts, int highest);
// Q3_K (half 32, highest 31), Q6_K (128, 127): the largest of 16 scales gets the code -half.
CodedScales code_signed_scales(const float* scales, int half, int highest);

}  // namespace quantmap::ggml
