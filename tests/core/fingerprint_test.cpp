#include "core/fingerprint.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace quantmap {
namespace {

// FIPS 180-4's examples (NIST CSRC, "SHA256.pdf"; the million is of FIPS 180-2, appendix B.3).
TEST(Fingerprint, Fips180Vectors) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Fingerprint, PiecesGiveWhatTheWholeGives) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  for (const std::size_t piece : {1, 63, 64, 65, 999}) {
    Fingerprint fingerprint;
    fingerprint.add(nullptr, 0);
    for (std::size_t at = 0; at < text.size(); at += piece)
      fingerprint.add(std::string_view(text).substr(at, piece));
    EXPECT_EQ(fingerprint.hex(), sha256(text)) << piece;
  }
}

TEST(Fingerprint, IdsAreInt32LittleEndian) {
  const std::int32_t ids[] = {1, -2, 0x01020304, std::numeric_limits<std::int32_t>::max()};
  const char bytes[] = "\x01\x00\x00\x00\xfe\xff\xff\xff\x04\x03\x02\x01\xff\xff\xff\x7f";
  EXPECT_EQ(sha256_of_ids(ids), sha256(std::string_view(bytes, 16)));
  EXPECT_EQ(sha256_of_ids({}), sha256(""));
  // python3 -c 'import struct, hashlib; print(hashlib.sha256(struct.pack("<100000i",
  // *range(100000))).hexdigest())'
  std::vector<std::int32_t> many(100000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int32_t>(i);
  EXPECT_EQ(sha256_of_ids(many), "20ff50e632cc575386b15d7fcd9c3842ef435388ed29ae8c30617158ee907dc5");
}

}  // namespace
}  // namespace quantmap
