// A tensor of one window as a format would store it: scales that span the window take their range from it.
#pragma once

#include <cstdint>

#include "formats/quantize.hpp"

namespace quantmap {

// x, out: [tokens][width], which may be one; rows are cut into pieces of `piece` columns that are quantized
// apart (a cache: one a head; else width). Allocates [tokens][piece] floats where piece < width.
void quantize_window(const QuantSpec& spec, std::int64_t tokens, std::int64_t width, std::int64_t piece,
                     const float* x, float* out, QuantCounts* counts);

}  // namespace quantmap
