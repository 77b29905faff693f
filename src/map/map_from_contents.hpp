// A map of a model by its tensors alone, for families whose configuration is not known: every matrix inside a
// decoder layer is a Linear. What it caches is not known.
#pragma once

#include "map/contents.hpp"
#include "map/model_map.hpp"
#include "map/weight_bytes.hpp"

namespace quantmap {

ModelMap map_from_contents(const Contents& contents, const std::string& source);

// The weights as the files hold them, by part: the checkpoint's own row where no configuration says how it is
// stored. Inputs count as 16 bits.
WeightBytes weight_bytes_of_files(const Contents& contents);

// The part of a model that a module belongs to, by its name (HF or GGUF).
Part part_of(std::string_view module);

}  // namespace quantmap
