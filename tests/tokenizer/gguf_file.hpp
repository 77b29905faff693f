// A GGUF file with a vocabulary and no tensors, written for a test.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace quantmap::testing {

class GgufWriter {
 public:
  GgufWriter& text(const std::string& key, const std::string& value) {
    return entry(key, 8) += sized(value), *this;
  }
  GgufWriter& flag(const std::string& key, bool value) {
    return entry(key, 7) += static_cast<char>(value), *this;
  }
  GgufWriter& number(const std::string& key, std::uint32_t value) {
    return entry(key, 4) += raw(value), *this;
  }
  GgufWriter& texts(const std::string& key, const std::vector<std::string>& values) {
    std::string& out = array(key, 8, values.size());
    for (const std::string& value : values) out += sized(value);
    return *this;
  }
  GgufWriter& floats(const std::string& key, const std::vector<float>& values) {
    std::string& out = array(key, 6, values.size());
    for (const float value : values) out += raw(value);
    return *this;
  }
  GgufWriter& integers(const std::string& key, const std::vector<std::int32_t>& values) {
    std::string& out = array(key, 5, values.size());
    for (const std::int32_t value : values) out += raw(value);
    return *this;
  }
  std::string bytes() const {
    return "GGUF" + raw(std::uint32_t{3}) + raw(std::uint64_t{0}) + raw(std::uint64_t{entries_}) + body_;
  }

 private:
  template <typename T>
  static std::string raw(T value) {
    std::string out(sizeof value, '\0');
    std::memcpy(out.data(), &value, sizeof value);
    return out;
  }
  static std::string sized(const std::string& text) { return raw(std::uint64_t{text.size()}) + text; }
  std::string& entry(const std::string& key, std::uint32_t type) {
    ++entries_;
    return body_ += sized(key) + raw(type);
  }
  std::string& array(const std::string& key, std::uint32_t type, std::size_t count) {
    return entry(key, 9) += raw(type) + raw(std::uint64_t{count});
  }

  std::string body_;
  std::uint64_t entries_ = 0;
};

}  // namespace quantmap::testing
