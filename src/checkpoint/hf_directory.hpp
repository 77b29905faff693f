// The tensor files of an HF directory: `model.safetensors`, or the shards that `model.safetensors.index.json`
// names. Nothing else in the folder is read (B29). Where both are there the single file is taken, as
// transformers does.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"

namespace quantmap {

struct HfTensor {
  std::size_t shard = 0;                    // in HfDirectory::shards
  const SafetensorsEntry* entry = nullptr;  // into it
};

struct HfDirectory {
  std::vector<SafetensorsFile> shards;  // sorted by file name
  std::vector<HfTensor> tensors;        // shard by shard, by offset; each name once
  std::vector<std::string> warnings;
};

// Throws Error (input): no such file, a shard that is missing (before any is opened), an index that disagrees
// with its shards. `list_only`: nothing is going to be read, so that an index naming tensors that are not
// there is a warning, and tensors of an unknown dtype are kept.
HfDirectory open_hf_directory(const std::filesystem::path& directory, bool list_only = false);

}  // namespace quantmap
