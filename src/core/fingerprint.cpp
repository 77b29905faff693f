#include "core/fingerprint.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "core/error.hpp"

namespace quantmap {

struct Fingerprint::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Fingerprint::Fingerprint() : state_(std::make_unique<State>()) {
  if (!state_->context || EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1)
    fail("fingerprint", "", "SHA-256 is not available from OpenSSL");
}

Fingerprint::~Fingerprint() = default;

void Fingerprint::add(std::string_view bytes) { add(bytes.data(), bytes.size()); }

void Fingerprint::add(const void* data, std::size_t bytes) {
  if (EVP_DigestUpdate(state_->context, data, bytes) != 1) fail("fingerprint", "", "SHA-256 failed");
}

std::string Fingerprint::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  if (EVP_DigestFinal_ex(state_->context, digest, &length) != 1) fail("fingerprint", "", "SHA-256 failed");
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string sha256(std::string_view bytes) {
  Fingerprint fingerprint;
  fingerprint.add(bytes);
  return fingerprint.hex();
}

std::string sha256_of_ids(std::span<const std::int32_t> ids) {
  Fingerprint fingerprint;
  for (const std::int32_t id : ids) {
    const auto bits = static_cast<std::uint32_t>(id);
    const unsigned char bytes[4] = {static_cast<unsigned char>(bits), static_cast<unsigned char>(bits >> 8),
                                    static_cast<unsigned char>(bits >> 16),
                                    static_cast<unsigned char>(bits >> 24)};
    fingerprint.add(bytes, sizeof bytes);
  }
  return fingerprint.hex();
}

}  // namespace quantmap
