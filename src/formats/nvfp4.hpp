// NVFP4: blocks of 16 E2M1 codes along a row, an E4M3 scale each, an FP32 scale for the tensor (formats.md,
// section 4). Canonical is NVIDIA ModelOpt's order of operations; the 4/6 choice is Transformer Engine's with
// squared error and M = 256 (Cook et al. 2025, "Four Over Six").
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "formats/fp4_e2m1.hpp"
#include "formats/fp8_e4m3.hpp"

namespace quantmap {

inline constexpr std::int64_t kNvfp4Block = 16;

// g = fl(amax / 2688), 2688 = 6 * 448; 1 where that is zero.
QUANTMAP_HD constexpr float nvfp4_tensor_scale(float amax) {
  const float g = amax / 2688.0F;
  return g > 0 ? g : 1.0F;
}

// The tensor maximum under which a tensor scale is 1: `noglobal`.
QUANTMAP_HD constexpr float nvfp4_unit_amax(bool four_over_six) {
  return four_over_six ? 6.0F * 256.0F : 2688.0F;
}

// E4M3(min(448, fl(fl(amax_b / 6) / g))).
QUANTMAP_HD constexpr std::uint32_t nvfp4_block_scale(float block_amax, float g) {
  return Fp8E4M3::encode_saturating(std::min(448.0F, block_amax / 6.0F / g));
}

// What the 4/6 choice takes from the tensor: S = fl(6M / amax), at most FLT_MAX, 1 for a zero tensor; D =
// fl(1/S).
struct FourOverSix {
  static constexpr float kSixM = 6.0F * 256.0F;
  float amax;
  float encode_scale;  // S
  float decode_scale;  // D

  QUANTMAP_HD constexpr explicit FourOverSix(float tensor_amax)
      : amax(tensor_amax),
        encode_scale(tensor_amax > 0 ? std::min(kSixM / tensor_amax, std::numeric_limits<float>::max())
                                     : 1.0F),
        decode_scale(1.0F / encode_scale) {}

  // The candidates: s6 maps the block's maximum to 6, s4 to 4.
  QUANTMAP_HD constexpr std::uint32_t six(float block_amax) const {
    return Fp8E4M3::encode_saturating(std::min(448.0F, block_amax / 6.0F * encode_scale));
  }
  QUANTMAP_HD constexpr std::uint32_t four(float block_amax) const {
    return Fp8E4M3::encode_saturating(std::min(448.0F, 1.5F * (block_amax / 6.0F * encode_scale)));
  }
  // What x is multiplied with under the scale s.
  QUANTMAP_HD constexpr float encoder(float s) const {
    return std::min(1.0F / (s * decode_scale), std::numeric_limits<float>::max());
  }
  // The value that the choice compares with x; the stored one decodes as fl(q * s) / S.
  QUANTMAP_HD constexpr float compared(float q, float s) const { return q * s * amax / kSixM; }
};

}  // namespace quantmap
