// FP6 E3M2: 1/3/2 bits, bias 3, largest 28 (1F), least normal 2^-2, least subnormal 2^-4; no Inf, no NaN. OCP
// Microscaling Formats v1.0; formats.md, section 1.
#pragma once

#include "formats/minifloat.hpp"

namespace quantmap {

using Fp6E3M2 = Minifloat<3, 2, 3, TopCodes::numbers>;
static_assert(Fp6E3M2::kMaxCode == 0x1F && Fp6E3M2::kMax == 28.0F && Fp6E3M2::kMinSubnormal == 0x1p-4F);

}  // namespace quantmap
