// Plain values packed one behind another, as results wait in the database for a resumed run: native byte
// order, no tags, read back in the order in which they were put. Taking more than is there throws Error
// (failed) with `complaint` as its detail.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/error.hpp"

namespace quantmap {

template <typename T>
void put_bytes(std::string& packed, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  packed.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
void put_bytes(std::string& packed, const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  packed.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// `at`: where to read, moved behind what was read; at most packed.size().
template <typename T>
void take_bytes(std::string_view packed, std::size_t& at, T& value, const char* complaint) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (packed.size() - at < sizeof value) fail("database", "", complaint);
  std::memcpy(&value, packed.data() + at, sizeof value);
  at += sizeof value;
}

// `count` values, replacing what `values` held.
template <typename T>
void take_bytes(std::string_view packed, std::size_t& at, std::size_t count, std::vector<T>& values,
                const char* complaint) {
  static_assert(std::is_trivially_copyable_v<T>);
  if ((packed.size() - at) / sizeof(T) < count) fail("database", "", complaint);
  values.resize(count);
  if (count > 0) std::memcpy(values.data(), packed.data() + at, count * sizeof(T));
  at += count * sizeof(T);
}

}  // namespace quantmap
