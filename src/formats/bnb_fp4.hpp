// bitsandbytes' own FP4 (0.50.2), which is not E2M1: codes 0..7 are {0, 0.0625, 8, 12, 4, 6, 2, 3}/12, bit 3
// is the sign. formats.md, section 5. As its default path rounds: among the sorted signed levels, a tie to
// the lower (its CUDA path rounds |y|). Zeros have code 0; code 8, the other zero, is never written.
#pragma once

#include "formats/codebook.hpp"

namespace quantmap {

struct BnbFp4Table {
  static constexpr std::array<float, 15> kLevels = {-1.0F,     -2.0F / 3,     -0.5F, -1.0F / 3,    -0.25F,
                                                    -1.0F / 6, -0.0625F / 12, 0.0F,  0.0625F / 12, 1.0F / 6,
                                                    0.25F,     1.0F / 3,      0.5F,  2.0F / 3,     1.0F};
  static constexpr std::array<std::uint8_t, 15> kCodes = {11, 10, 13, 12, 15, 14, 9, 0, 1, 6, 7, 4, 5, 2, 3};
};
using BnbFp4 = Codebook<BnbFp4Table>;

}  // namespace quantmap
