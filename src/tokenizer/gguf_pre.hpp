// `tokenizer.ggml.pre`: how llama.cpp cuts text for the byte-level BPE vocabulary of a GGUF file.
#pragma once

#include <string_view>
#include <vector>

namespace quantmap {

struct GgufPre {
  std::vector<std::string_view> names;     // values of the key that mean this
  std::vector<std::string_view> patterns;  // applied in turn, each to the pieces of the one before
  bool ignore_merges = false;
  bool add_bos = false;  // unless tokenizer.ggml.add_bos_token says otherwise
};

// Nothing if quantmap does not know the name.
const GgufPre* find_gguf_pre(std::string_view name);

}  // namespace quantmap
