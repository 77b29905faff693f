// One safetensors file (huggingface/safetensors README and tensor.rs; formats.md, section 8): u64 header
// length, JSON header, buffer. Validated as the reference reader does when opened, so what an accepted file
// says can be trusted; each fault is one Error (input) line naming file and tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quantmap {

struct SafetensorsEntry {
  std::string name;
  std::string_view dtype;   // as in the file: `BF16`; a name from the table of known types
  bool known_dtype = true;  // false: only where unknown types are kept; bytes are the offsets' word alone
  std::vector<std::int64_t> shape;  // row-major; of F4 and F6 types it counts values
  const std::byte* data = nullptr;  // any alignment: an odd-sized tensor may come before
  std::int64_t bytes = 0;
};

// Move-only. Entries point into it.
class SafetensorsFile {
 public:
  // `keep_unknown`: a tensor of an unknown dtype is listed instead of refused (nobody can read it).
  static SafetensorsFile open(const std::filesystem::path& path, bool keep_unknown = false);
  // A file already in memory; `bytes` must outlive the result. `name` is used in messages.
  static SafetensorsFile parse(std::span<const std::byte> bytes, const std::string& name);
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  const std::string& name() const;
  std::span<const SafetensorsEntry> tensors() const;  // by offset
  const SafetensorsEntry* find(std::string_view tensor_name) const;
  // Gives back the resident pages of [begin, begin + size) (nothing to do for a file parsed from memory).
  void release(const std::byte* begin, std::int64_t size) const;
  std::span<const std::byte> bytes() const;  // the whole file

 private:
  struct State;
  explicit SafetensorsFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quantmap
