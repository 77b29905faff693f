// FP6 E2M3: 1/2/3 bits, bias 1, largest 7.5 (1F), least normal 1, least subnormal 2^-3; no Inf, no NaN. OCP
// Microscaling Formats v1.0; formats.md, section 1.
#pragma once

#include "formats/minifloat.hpp"

namespace quantmap {

using Fp6E2M3 = Minifloat<2, 3, 1, TopCodes::numbers>;
static_assert(Fp6E2M3::kMaxCode == 0x1F && Fp6E2M3::kMax == 7.5F && Fp6E2M3::kMinSubnormal == 0x1p-3F);

}  // namespace quantmap
