// What a checkpoint's files hold, from their headers alone: every tensor, and for each module how its weights
// are stored, told by the tensors that stand together (formats.md, section 8). No tensor data are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_source.hpp"
#include "map/model_map.hpp"

namespace quantmap {

// How a module's weights are stored.
enum class Storage : std::uint8_t {
  plain,      // floats as they are: F32, F16, BF16
  ct_packed,  // compressed-tensors pack-quantized: `weight_packed` I32
  int8,       // `weight` I8 with `weight_scale` (bitsandbytes: `SCB`)
  fp8,        // `weight` F8 with `weight_scale` or `weight_scale_inv`
  nvfp4,      // `weight` or `weight_packed` U8 with F8_E4M3 scales of 16
  mxfp4,      // U8 with U8 scales of 32; gpt-oss: `…_blocks`, `…_scales`
  mxfp8,      // `weight` F8 with U8 scales of 32
  gptq,       // `qweight`, `qzeros`, `scales`, `g_idx`
  awq,        // `qweight`, `qzeros`, `scales`
  bnb_4bit,   // `weight` U8 [n/2, 1] with `weight.absmax`
  ggml,       // a block type of GGUF
};
std::string_view storage_name(Storage storage);

struct ModuleContents {
  std::string name;
  Storage storage = Storage::plain;
  std::string format;               // `int4`, `fp8_e4m3`, `BF16`, `Q4_K`
  int bits = 0;                     // of one code; 0: not told by the shapes
  std::int64_t group_size = 0;      // along the input; 0: none, or not told
  std::string granularity;          // `tensor`, `channel`, `block`, `group`; empty: the format's own
  std::int64_t rows = 0, cols = 0;  // logical [out][in]; a stack of matrices: rows of all
  std::int64_t parameters = 0;      // logical, never packed words (B59)
  std::int64_t weight_bytes = 0;    // codes, scales, zero points, indices
  bool input_scale = false;         // static activations
  bool matrix = false;              // two dimensions or more
  std::size_t dimensions = 0;       // of a plain weight
};

struct Contents {
  std::vector<TensorEntry> tensors;  // in file order; `dtype` as the file names it
  std::map<std::string, ModuleContents, std::less<>> modules;
  std::vector<std::string>
      kv_scales;  // names of tensors that scale keys or values, by any of the names in use (B55)
  std::int64_t parameters = 0;  // of modules: logical values
  std::int64_t bytes = 0;       // of all tensors
  std::int64_t files = 0;
  std::string file_type;  // of a GGUF file: `Q4_K_M`
  bool gguf = false;
  std::vector<std::string> warnings;
};

// Headers of an HF directory's tensor files (those that checkpoint/hf_directory.hpp names); a GGUF file.
// `bits_said`: code bits of the configuration, for packings whose shapes do not tell them; 0: none. Throws
// Error (input) for a file that cannot be used; an unknown dtype is a warning.
Contents read_contents(const std::filesystem::path& directory, int bits_said);
Contents read_gguf_contents(const std::filesystem::path& file);
// Of tensors listed already: what the two above do, for tests.
void tell_modules(Contents& contents, int bits_said);

}  // namespace quantmap
