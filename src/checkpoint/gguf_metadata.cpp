#include "checkpoint/gguf_metadata.hpp"

#include <array>
#include <limits>
#include <optional>

namespace quantmap {
namespace {

struct TypeFacts {
  std::string_view name;
  std::uint64_t bytes;  // 0: not of one size
};

constexpr std::array<TypeFacts, 13> kTypes{{
    {"uint8", 1},
    {"int8", 1},
    {"uint16", 2},
    {"int16", 2},
    {"uint32", 4},
    {"int32", 4},
    {"float32", 4},
    {"bool", 1},
    {"string", 0},
    {"array", 0},
    {"uint64", 8},
    {"int64", 8},
    {"float64", 8},
}};

const TypeFacts& facts(GgufType type) { return kTypes[static_cast<std::size_t>(type)]; }

template <class T>
T load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

bool is_integer(GgufType type) {
  switch (type) {
    case GgufType::f32:
    case GgufType::f64:
    case GgufType::boolean:
    case GgufType::string:
    case GgufType::array:
      return false;
    default:
      return true;
  }
}

// Nothing where it does not fit.
std::optional<std::int64_t> load_integer(GgufType type, const std::byte* data) {
  switch (type) {
    case GgufType::u8:
      return load<std::uint8_t>(data);
    case GgufType::i8:
      return load<std::int8_t>(data);
    case GgufType::u16:
      return load<std::uint16_t>(data);
    case GgufType::i16:
      return load<std::int16_t>(data);
    case GgufType::u32:
      return load<std::uint32_t>(data);
    case GgufType::i32:
      return load<std::int32_t>(data);
    case GgufType::i64:
      return load<std::int64_t>(data);
    default: {
      const auto value = load<std::uint64_t>(data);
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
      return static_cast<std::int64_t>(value);
    }
  }
}

GgufType read_type(GgufCursor& cursor, const std::string& file, std::string_view what) {
  const auto type = cursor.number<std::uint32_t>(what);
  if (type >= kTypes.size())
    fail_input(kBadGguf, file, fmt::format("{}: {}", cursor.place(), what), "0 to 12", std::to_string(type));
  return static_cast<GgufType>(type);
}

// A bool is one byte, 0 or 1; anything else means that the reader lost its place or the file is damaged.
void check_booleans(const GgufCursor& cursor, const std::byte* data, std::uint64_t count,
                    const std::string& file) {
  for (std::uint64_t i = 0; i < count; ++i)
    if (const auto value = load<std::uint8_t>(data + i); value > 1)
      fail_input(kBadGguf, file, cursor.place() + ": bool", "0 or 1", std::to_string(value));
}

GgufValue read_value(GgufCursor& cursor, const std::string& file) {
  GgufValue value;
  value.type = read_type(cursor, file, "value type");
  switch (value.type) {
    case GgufType::string: {
      const std::string_view text = cursor.string("string");
      value.count = text.size();
      value.data = reinterpret_cast<const std::byte*>(text.data());
      return value;
    }
    case GgufType::array:
      value.item = read_type(cursor, file, "array item type");
      if (value.item == GgufType::array)
        fail_input(kBadGguf, file, cursor.place(), "an array of numbers, bools or strings",
                   "an array of arrays");
      value.count = cursor.number<std::uint64_t>("array length");
      if (value.item == GgufType::string) {
        if (value.count > cursor.left() / 8)
          fail_input(kBadGguf, file, cursor.place() + ": array length",
                     fmt::format("at most {} strings to the file's end", cursor.left() / 8),
                     std::to_string(value.count));
        value.data = cursor.take(0, 1, "array");
        for (std::uint64_t i = 0; i < value.count; ++i) cursor.string("string in an array");
      } else {
        value.data = cursor.take(value.count, facts(value.item).bytes, "array");
        if (value.item == GgufType::boolean) check_booleans(cursor, value.data, value.count, file);
      }
      return value;
    default:
      value.data = cursor.take(facts(value.type).bytes, 1, "value");
      if (value.type == GgufType::boolean) check_booleans(cursor, value.data, 1, file);
      return value;
  }
}

std::string describe(const GgufValue& value) {
  if (value.type == GgufType::array)
    return fmt::format("an array of {} {}", value.count, facts(value.item).name);
  if (value.type == GgufType::string)
    return fmt::format("a string {}", quantmap::quoted(std::string_view(
                                          reinterpret_cast<const char*>(value.data), value.count)));
  if (is_integer(value.type))
    if (const auto number = load_integer(value.type, value.data))
      return fmt::format("{} {}", facts(value.type).name, *number);
  return std::string(facts(value.type).name);
}

}  // namespace

void GgufMetadata::read(GgufCursor& cursor, std::uint64_t count, const std::string& file) {
  file_ = file;
  for (std::uint64_t i = 0; i < count; ++i) {
    cursor.set_place(fmt::format("key {} of {}", i + 1, count));
    const std::string_view key = cursor.string("name");
    if (key.empty() || key.size() > 65535)
      fail_input(kBadGguf, file, cursor.place(), "a name of 1 to 65535 bytes",
                 fmt::format("{} bytes", key.size()));
    cursor.set_place("key " + quantmap::quoted(key));
    if (!values_.emplace(key, read_value(cursor, file)).second)
      fail_input(kBadGguf, file, cursor.place() + " occurs twice");
    keys_.push_back(key);
  }
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void GgufMetadata::wrong_type(std::string_view key, const GgufValue& value, std::string_view expected) const {
  fail_input(kBadGguf, file_, "key " + quantmap::quoted(key), expected, describe(value));
}

std::string_view GgufMetadata::string(std::string_view key, const GgufValue& value) const {
  if (value.type != GgufType::string) wrong_type(key, value, "a string");
  return {reinterpret_cast<const char*>(value.data), value.count};
}

std::int64_t GgufMetadata::integer(std::string_view key, const GgufValue& value) const {
  if (!is_integer(value.type)) wrong_type(key, value, "an integer");
  const auto number = load_integer(value.type, value.data);
  if (!number) wrong_type(key, value, "an integer below 2^63");
  return *number;
}

double GgufMetadata::number(std::string_view key, const GgufValue& value) const {
  if (value.type == GgufType::f32) return load<float>(value.data);
  if (value.type == GgufType::f64) return load<double>(value.data);
  if (!is_integer(value.type)) wrong_type(key, value, "a number");
  return static_cast<double>(integer(key, value));
}

bool GgufMetadata::boolean(std::string_view key, const GgufValue& value) const {
  if (value.type != GgufType::boolean) wrong_type(key, value, "a bool");
  return load<std::uint8_t>(value.data) != 0;
}

const GgufValue& GgufMetadata::array(std::string_view key, std::string_view expected) const {
  const GgufValue* value = find(key);
  if (!value) fail_input(kBadGguf, file_, "key " + quantmap::quoted(key), expected, "no such key");
  if (value->type != GgufType::array) wrong_type(key, *value, expected);
  return *value;
}

std::vector<std::string_view> GgufMetadata::strings(std::string_view key) const {
  const GgufValue& value = array(key, "an array of strings");
  std::vector<std::string_view> out;
  if (value.count == 0) return out;
  if (value.item != GgufType::string) wrong_type(key, value, "an array of strings");
  out.reserve(value.count);
  const std::byte* at = value.data;  // lengths were checked when the file was read
  for (std::uint64_t i = 0; i < value.count; ++i) {
    const auto length = load<std::uint64_t>(at);
    out.emplace_back(reinterpret_cast<const char*>(at) + sizeof length, length);
    at += sizeof length + length;
  }
  return out;
}

std::vector<float> GgufMetadata::floats(std::string_view key) const {
  const GgufValue& value = array(key, "an array of floats");
  std::vector<float> out(value.count);
  if (value.count == 0) return out;
  if (value.item == GgufType::f32) {
    std::memcpy(out.data(), value.data, value.count * sizeof(float));
  } else if (value.item == GgufType::f64) {
    for (std::uint64_t i = 0; i < value.count; ++i)
      out[i] = static_cast<float>(load<double>(value.data + 8 * i));
  } else {
    wrong_type(key, value, "an array of floats");
  }
  return out;
}

std::vector<std::int64_t> GgufMetadata::integers(std::string_view key) const {
  const GgufValue& value = array(key, "an array of integers");
  std::vector<std::int64_t> out;
  if (value.count == 0) return out;
  if (!is_integer(value.item)) wrong_type(key, value, "an array of integers");
  out.reserve(value.count);
  for (std::uint64_t i = 0; i < value.count; ++i) {
    const auto number = load_integer(value.item, value.data + facts(value.item).bytes * i);
    if (!number) wrong_type(key, value, "an array of integers below 2^63");
    out.push_back(*number);
  }
  return out;
}

std::vector<bool> GgufMetadata::booleans(std::string_view key) const {
  const GgufValue& value = array(key, "an array of bools");
  std::vector<bool> out;
  if (value.count == 0) return out;
  if (value.item != GgufType::boolean) wrong_type(key, value, "an array of bools");
  out.reserve(value.count);
  for (std::uint64_t i = 0; i < value.count; ++i) out.push_back(load<std::uint8_t>(value.data + i) != 0);
  return out;
}

}  // namespace quantmap
