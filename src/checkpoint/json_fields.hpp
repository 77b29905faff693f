// Typed access to the keys of one JSON object of a configuration; every fault is one line naming file and
// key. A key that is null counts as absent, as in transformers.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace quantmap {

class JsonFields {
 public:
  // `prefix` is put before keys in messages: `rope_scaling.`. Refers to its arguments.
  JsonFields(const nlohmann::json& object, const std::string& file, std::string prefix = "");

  bool has(const std::string& key) const;                  // there and not null
  bool mentions(const std::string& key) const;             // there, null or not
  const nlohmann::json& at(const std::string& key) const;  // has(key)

  // Whole numbers in [least, most].
  std::optional<std::int64_t> integer(const std::string& key, std::int64_t least, std::int64_t most) const;
  std::int64_t required_integer(const std::string& key, std::int64_t least, std::int64_t most) const;
  // Finite numbers above `above`.
  std::optional<double> number(const std::string& key,
                               double above = std::numeric_limits<double>::lowest()) const;
  std::optional<bool> boolean(const std::string& key) const;
  std::optional<std::string> string(const std::string& key) const;

  [[noreturn]] void wrong(const std::string& key, std::string_view expected) const;  // found: the value there
  [[noreturn]] void wrong(const std::string& key, std::string_view expected, std::string_view found) const;

 private:
  const nlohmann::json& object_;
  const std::string& file_;
  std::string prefix_;
};

}  // namespace quantmap
