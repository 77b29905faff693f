// The key-value part of a GGUF file: typed values left where they are in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/gguf_cursor.hpp"

namespace quantmap {

// As stored (ggml `gguf_type`).
enum class GgufType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};

struct GgufValue {
  GgufType type = GgufType::u8;
  GgufType item = GgufType::u8;     // of an array
  std::uint64_t count = 1;          // items of an array; bytes of a string
  const std::byte* data = nullptr;  // the value, the string's bytes, or the array's first item; any alignment
};

class GgufMetadata {
 public:
  // Reads `count` pairs; throws Error (input) naming `file`.
  void read(GgufCursor& cursor, std::uint64_t count, const std::string& file);

  const GgufValue* find(std::string_view key) const;  // null if absent
  const std::vector<std::string_view>& keys() const { return keys_; }

  // Throw Error (input) naming file and key where the type is another.
  std::string_view string(std::string_view key, const GgufValue& value) const;
  std::int64_t integer(std::string_view key, const GgufValue& value) const;
  double number(std::string_view key, const GgufValue& value) const;
  bool boolean(std::string_view key, const GgufValue& value) const;
  std::vector<std::string_view> strings(std::string_view key) const;
  std::vector<float> floats(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;
  std::vector<bool> booleans(std::string_view key) const;

 private:
  const GgufValue& array(std::string_view key, std::string_view expected) const;
  [[noreturn]] void wrong_type(std::string_view key, const GgufValue& value, std::string_view expected) const;

  std::string file_;
  std::vector<std::string_view> keys_;
  std::unordered_map<std::string_view, GgufValue> values_;
};

}  // namespace quantmap
