// The JSON header of a safetensors file, read in one pass without building a document: a header may have
// 100,000,000 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quantmap {

struct SafetensorsType {
  std::string_view name;
  int bits;
};

struct SafetensorsInfo {
  std::string name;
  const SafetensorsType* dtype = nullptr;  // null: unknown, and kept
  std::string unknown_dtype;               // as the file names it, where it is unknown
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> offsets;  // begin and end in the buffer
};

// Entries as they stand, each complete, known by type (unless `keep_unknown`), and named once; offsets and
// sizes are not yet checked. Throws Error (input) naming `file`.
std::vector<SafetensorsInfo> parse_safetensors_header(std::string_view json, const std::string& file,
                                                      bool keep_unknown = false);

}  // namespace quantmap
