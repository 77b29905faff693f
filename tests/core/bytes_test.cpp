#include <gtest/gtest.h>

#include <array>

#include "core/bytes.hpp"

namespace quantmap {
namespace {

std::string packed() {
  std::string bytes;
  put_bytes(bytes, std::int64_t{-3});
  put_bytes(bytes, std::vector<float>{1.5F, -0.0F});
  put_bytes(bytes, std::vector<float>{});
  put_bytes(bytes, std::array<std::uint8_t, 3>{1, 2, 3});
  return bytes;
}

TEST(Bytes, ReadBackWhatWasPutInOrder) {
  const std::string bytes = packed();
  ASSERT_EQ(bytes.size(), 8U + 8 + 0 + 3);
  std::size_t at = 0;
  std::int64_t number = 0;
  std::vector<float> values, none{7};
  std::array<std::uint8_t, 3> tail{};
  take_bytes(bytes, at, number, "short");
  take_bytes(bytes, at, 2, values, "short");
  take_bytes(bytes, at, 0, none, "short");
  take_bytes(bytes, at, tail, "short");
  EXPECT_EQ(at, bytes.size());
  EXPECT_EQ(number, -3);
  EXPECT_EQ(values, (std::vector<float>{1.5F, -0.0F}));
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(tail, (std::array<std::uint8_t, 3>{1, 2, 3}));
}

TEST(Bytes, TakingMoreThanIsThereThrows) {
  const std::string bytes = packed();
  std::int64_t number = 0;
  std::vector<float> values;
  std::size_t at = bytes.size() - 7;
  EXPECT_THROW(take_bytes(bytes, at, number, "short"), Error);
  EXPECT_THROW(take_bytes(bytes, at, 2, values, "short"), Error);
  // A count so large that its size in bytes wraps around.
  EXPECT_THROW(take_bytes(bytes, at, std::size_t{1} << 62, values, "short"), Error);
  EXPECT_EQ(at, bytes.size() - 7);
}

}  // namespace
}  // namespace quantmap
