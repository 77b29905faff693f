// A file mapped read-only into memory. Move-only; unmapped when destroyed. A file that shrinks while mapped
// is the one fault that cannot be turned into an error line.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace quantmap {

class MappedFile {
 public:
  MappedFile() = default;
  // Throws Error (input) naming the file if it cannot be opened, is not a regular file, or cannot be mapped.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::string& name() const { return name_; }
  // Tells the kernel that [begin, end) will not be needed again: resident pages are given back.
  void release(std::size_t begin, std::size_t end) const;

 private:
  std::string name_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// The whole text of a file; throws Error (input) naming it.
std::string read_text_file(const std::filesystem::path& path);
// Writes beside `path` and renames, so that a reader never sees half a file; a pipe or device is written to
// as it is. Throws Error (failed).
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace quantmap
