// Walks a GGUF file's header, every step checked against the end of the file.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace quantmap {

inline constexpr std::string_view kBadGguf = "bad GGUF file";

class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  // What is being read, for messages: `key 3 of 6`.
  void set_place(std::string place) { place_ = std::move(place); }
  const std::string& place() const { return place_; }

  std::uint64_t position() const { return position_; }
  std::uint64_t left() const { return bytes_.size() - position_; }

  // `count` items of `size` bytes each.
  const std::byte* take(std::uint64_t count, std::uint64_t size, std::string_view what) {
    if (count > left() / size)
      fail_input(
          kBadGguf, file_, fmt::format("{}: {} at byte {}", place_, what, position_),
          size == 1 ? fmt::format("{} bytes", count) : fmt::format("{} items of {} bytes", count, size),
          fmt::format("{} bytes to the file's end", left()));
    const std::byte* data = bytes_.data() + position_;
    position_ += count * size;
    return data;
  }

  template <class T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(1, sizeof value, what), sizeof value);
    return value;
  }

  std::string_view string(std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    return {reinterpret_cast<const char*>(take(length, 1, what)), length};
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& file_;
  std::string place_ = "header";
  std::uint64_t position_ = 0;
};

}  // namespace quantmap
