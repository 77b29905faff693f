// FP8 E5M2: 1/5/2 bits, bias 15, largest 57344 (7B), least normal 2^-14, least subnormal 2^-16, Inf 7C, NaN
// 7D..7F. Micikevicius et al. 2022 (arXiv 2209.05433); OCP OFP8. formats.md, section 1.
#pragma once

#include "formats/minifloat.hpp"

namespace quantmap {

using Fp8E5M2 = Minifloat<5, 2, 15, TopCodes::ieee>;
static_assert(Fp8E5M2::kMaxCode == 0x7B && Fp8E5M2::kMax == 57344.0F && Fp8E5M2::kMinSubnormal == 0x1p-16F);

}  // namespace quantmap
