// SHA-256 (FIPS 180-4, by OpenSSL) of what a result depends on: files, token ids, recipes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace quantmap {

class Fingerprint {
 public:
  Fingerprint();
  ~Fingerprint();
  Fingerprint(const Fingerprint&) = delete;
  Fingerprint& operator=(const Fingerprint&) = delete;

  void add(std::string_view bytes);
  void add(const void* data, std::size_t bytes);
  std::string hex();  // 64 lower-case digits; ends the computation

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256(std::string_view bytes);
// Of the ids as int32 little-endian, as product.md defines `token_ids`.
std::string sha256_of_ids(std::span<const std::int32_t> ids);

}  // namespace quantmap
