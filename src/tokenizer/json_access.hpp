// Reading parsed JSON with errors that name file, place, expected and found.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace quantmap {

// A value with the place where it is, for messages: `pre_tokenizer.pretokenizers[1]`.
class JsonPlace {
 public:
  JsonPlace(const nlohmann::json& value, std::string place, const std::string& file)
      : value_(&value), place_(std::move(place)), file_(&file) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& place() const { return place_; }
  const std::string& file() const { return *file_; }

  bool has(const char* key) const;  // there and not null
  JsonPlace at(const char* key) const;
  JsonPlace at(std::size_t index) const;
  std::size_t size() const;  // of an array
  std::string string(const char* key) const;
  std::string string_or(const char* key, const std::string& fallback) const;
  bool boolean(const char* key) const;
  bool boolean_or(const char* key, bool fallback) const;
  std::string as_string() const;
  // In [0, 2^31): a token id.
  std::int32_t as_id() const;

  [[noreturn]] void fail(std::string_view expected) const;  // … (expected X, found what is here)
  [[noreturn]] void refuse(std::string_view what) const;    // … WHAT is not supported
  [[noreturn]] void complain(std::string_view what) const;  // … WHAT

 private:
  const nlohmann::json* value_;
  std::string place_;
  const std::string* file_;
};

}  // namespace quantmap
