// bitsandbytes' own FP4 (0.50.2), which is not E2M1: codes 0..7 are {0, 0.0625, 8, 12, 4, 6, 2, 3}/12, bit 3
// is the sign. formats.md, section 5. As its default path rounds: among the sorted signed levels, a tie to
// the lower (its CUDA path rounds |y|). It has two zeros: 0 for what rounds up to zero, and zero itself, 8
// for what rounds down.
#pragma once

#include "formats/codebook.hpp"

namespace quantmap {

struct BnbFp4Table {
  static constexpr float kLeast = 0.0625F / 12;
  static constexpr std::array<float, 16> kLevels = {
      -1.0F, -2.0F / 3, -0.5F,    -1.0F / 3, -0.25F,   -1.0F / 6, -kLeast,  0.0F,
      0.0F,  kLeast,    1.0F / 6, 0.25F,     1.0F / 3, 0.5F,      2.0F / 3, 1.0F};
  static constexpr std::array<std::uint8_t, 16> kCodes = {11, 10, 13, 12, 15, 14, 9, 0,
                                                          8,  1,  6,  7,  4,  5,  2, 3};
};
using BnbFp4 = Codebook<BnbFp4Table>;

}  // namespace quantmap
