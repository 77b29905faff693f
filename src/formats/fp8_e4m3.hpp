// FP8 E4M3FN: 1/4/3 bits, bias 7, largest 448 (7E), least normal 2^-6, least subnormal 2^-9, no Inf, NaN 7F
// and FF. Micikevicius et al. 2022 (arXiv 2209.05433); OCP OFP8; safetensors calls it F8_E4M3. formats.md,
// section 1.
#pragma once

#include "formats/minifloat.hpp"

namespace quantmap {

using Fp8E4M3 = Minifloat<4, 3, 7, TopCodes::one_nan>;
static_assert(Fp8E4M3::kMaxCode == 0x7E && Fp8E4M3::kMax == 448.0F && Fp8E4M3::kMinSubnormal == 0x1p-9F);

// UE4M3, the scale of NVFP4: E4M3FN with the sign bit 0; nothing below zero is encoded.
QUANTMAP_HD constexpr std::uint32_t ue4m3_from_float(float x) {
  return x <= 0 ? 0U : Fp8E4M3::encode_saturating(x) & 0x7FU;
}

}  // namespace quantmap
