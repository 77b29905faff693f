// FP4 E2M1: 1/2/1 bits, bias 1: 0 0.5 1 1.5 2 3 4 6 and their negatives; no Inf, no NaN. The element of MXFP4
// and NVFP4. OCP Microscaling Formats v1.0; formats.md, section 1.
#pragma once

#include "formats/minifloat.hpp"

namespace quantmap {

using Fp4E2M1 = Minifloat<2, 1, 1, TopCodes::numbers>;
static_assert(Fp4E2M1::kMaxCode == 7 && Fp4E2M1::kMax == 6.0F && Fp4E2M1::kMinSubnormal == 0.5F);

}  // namespace quantmap
