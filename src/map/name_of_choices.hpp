// The name of a checkpoint by its three choices: `W4A16`, `W8A8`, `FP8 W8A8`, `NVFP4 W4A4 + FP8 KV`, `FP8 KV
// only`, `mixed (…)`. Integers go by their bits alone; other formats by their name and bits.
#pragma once

#include <string>

#include "map/quant_config/quant_config.hpp"

namespace quantmap {

// `FP8`, `NVFP4`, `INT8`, …: a format as names of checkpoints have it.
std::string short_format(const std::string& format);

// Of one group: `NVFP4 W4A16`; `W16A16` where nothing is quantized.
std::string name_of(const QuantGroup& group);
// Of the whole configuration; `BF16` where nothing is quantized, `unknown (METHOD)` where the method is not
// known.
std::string name_of(const QuantConfig& config);

}  // namespace quantmap
