// A map of a model by its tensors alone, for families whose configuration is not known: every matrix inside a
// decoder layer is a Linear. What it caches is not known.
#pragma once

#include "map/contents.hpp"
#include "map/model_map.hpp"

namespace quantmap {

ModelMap map_from_contents(const Contents& contents, const std::string& source);

// The weights as the files hold them: bytes by part, for the checkpoint's own row.
struct FileBytes {
  std::int64_t parameters = 0, bytes = 0;
  std::int64_t embedding_bytes = 0, lm_head_bytes = 0;
  std::int64_t quantized_values = 0, quantized_bytes = 0;
};
FileBytes file_bytes(const Contents& contents);

// The part of a model that a module belongs to, by its name (HF or GGUF).
Part part_of(std::string_view module);

}  // namespace quantmap
