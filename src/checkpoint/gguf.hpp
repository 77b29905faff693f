// GGUF v2 and v3, little-endian (ggml's docs/gguf.md, as gguf.cpp of llama.cpp reads it; formats.md, section
// 8): typed metadata and a tensor table. Everything is checked when opened and each fault is one Error
// (input) line; what an accepted file says can be trusted. Names stay as in the file: mapping to HF names is
// the caller's (gguf_names.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/ggml_blocks.hpp"

namespace quantmap {

struct GgufTensor {
  std::string name;                 // as in the file: `blk.0.attn_q.weight`
  const GgmlType* type = nullptr;   // never null
  std::vector<std::int64_t> shape;  // row-major: the file's dimensions reversed, [out][in]
  const std::byte* data = nullptr;  // in the map; any alignment the file has
  std::int64_t bytes = 0;
};

// Move-only. Views it gives out (strings, tensor data) live as long as it does.
class GgufFile {
 public:
  static GgufFile open(const std::filesystem::path& path);
  // A file already in memory; `bytes` must outlive the result. `name` is used in messages.
  static GgufFile parse(std::span<const std::byte> bytes, const std::string& name);
  GgufFile(GgufFile&&) noexcept;
  GgufFile& operator=(GgufFile&&) noexcept;
  ~GgufFile();

  const std::string& name() const;  // of the file, for messages
  std::uint32_t version() const;

  // Metadata. A getter returns nothing if the key is absent, and throws Error (input) naming file, key,
  // expected and found if it is there with another type.
  bool has(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;  // any integer type, if it fits
  std::optional<double> number(std::string_view key) const;         // any integer or float type
  std::optional<bool> boolean(std::string_view key) const;
  // Arrays: throw also if the key is absent (ask has() first).
  std::vector<std::string_view> strings(std::string_view key) const;
  std::vector<float> floats(std::string_view key) const;           // of float32 or float64
  std::vector<std::int64_t> integers(std::string_view key) const;  // of any integer type
  std::vector<bool> booleans(std::string_view key) const;
  bool is_array(std::string_view key) const;
  std::vector<std::string_view> keys() const;  // in file order

  std::span<const GgufTensor> tensors() const;  // in file order
  const GgufTensor* find(std::string_view tensor_name) const;
  // Gives back the resident pages of [begin, begin + size) (nothing to do for a file parsed from memory).
  void release(const std::byte* begin, std::int64_t size) const;
  std::span<const std::byte> bytes() const;  // the whole file

 private:
  struct State;
  explicit GgufFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quantmap
