// NF4 (Dettmers et al. 2023, arXiv 2305.14314; bitsandbytes 0.50.2): sixteen levels at quantiles of the
// normal distribution. formats.md, section 5. An all-zero block has code 7 (D12).
#pragma once

#include "formats/codebook.hpp"

namespace quantmap {

struct Nf4Table {
  static constexpr std::array<float, 16> kLevels = {
      -1.0F,           -0x1.647362p-1F, -0x1.0cd66p-1F,  -0x1.94654p-2F,
      -0x1.23449ap-2F, -0x1.7a6a7ep-3F, -0x1.74f0e2p-4F, 0.0F,
      0x1.45f5fep-4F,  0x1.4995c6p-3F,  0x1.f809bap-3F,  0x1.5a0674p-2F,
      0x1.c3497p-2F,   0x1.200f56p-1F,  0x1.722766p-1F,  1.0F};
  static constexpr std::array<std::uint8_t, 16> kCodes = {0, 1, 2,  3,  4,  5,  6,  7,
                                                          8, 9, 10, 11, 12, 13, 14, 15};
};
using Nf4 = Codebook<Nf4Table>;

}  // namespace quantmap
