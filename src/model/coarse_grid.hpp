// Was this checkpoint quantized before? Its weights then take few values in each block: at most 2^b of them,
// for blocks long enough that free values would take more. Numbers of b bits and up are flattered by such
// weights.
#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/checkpoint.hpp"

namespace quantmap {

struct CoarseGrid {
  int levels = 0;           // the most values found in a block: 16 for a 4-bit grid
  int bits = 0;             // ceil(log2 levels)
  std::int64_t block = 0;   // consecutive weights of a row
  double share = 0;         // of the blocks looked at that fit
  std::int64_t blocks = 0;  // looked at
};
// Looks at rows of Linears spread over the model (a few million weights at most).
std::optional<CoarseGrid> find_coarse_grid(const Checkpoint& checkpoint);

// The number of different values among x[0, count), -0 and 0 the same.
int distinct_values(const float* x, std::int64_t count);

}  // namespace quantmap
