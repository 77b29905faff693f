#include "core/size.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/random.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kK = 1024, kM = kK * kK, kG = kM * kK;

TEST(Size, UnitsAreBinary) {
  const std::pair<std::string_view, std::int64_t> kCases[] = {
      {"64M", 64 * kM},
      {"2G", 2 * kG},
      {"512K", 512 * kK},
      {"0", 0},
      {"1", 1},
      {"4096", 4096},
      {"17B", 17},
      {"3 B", 3},
      {"1T", kG * kK},
      {"1P", kG * kM},
      {"64m", 64 * kM},
      {"64MiB", 64 * kM},
      {"64mib", 64 * kM},
      {"1.5G", 3 * kG / 2},
      {"0.5KiB", 512},
      {"15.256 GiB", 16381005266},
      {"0.0001K", 0},                          // cut to whole bytes
      {"9007199254740993", 9007199254740993},  // 2^53 + 1: no double on the way
      {"9223372036854775807", 9223372036854775807},
      {"8191P", 8191 * kG * kM},
  };
  for (const auto& [text, bytes] : kCases) EXPECT_EQ(parse_size(text, "--memory"), bytes) << text;
}

TEST(Size, AnythingElseIsRefusedNamingTheOptionAndTheText) {
  for (const std::string_view text : {"",          " ",
                                      "M",         "-1",
                                      "-64M",      "+1",
                                      "64X",       "64Mi",
                                      "64MB",      "64Q",
                                      "1e9",       "1.5",
                                      "1.G",       ".5G",
                                      "1..5G",     "1.5.5G",
                                      "64M ",      " 64M",
                                      "64  M",     "0x40",
                                      "64M64M",    "9223372036854775808",
                                      "8192P",     "99999999999999999999G",
                                      "64\xc2\xb5"}) {
    try {
      parse_size(text, "--memory");
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_EQ(std::string(error.what()).rfind("--memory: " + quoted(text), 0), 0U) << error.what();
    }
  }
}

TEST(Size, PrintsTheLargestUnitThatLeavesAtLeastOne) {
  const std::pair<std::int64_t, std::string_view> kCases[] = {
      {0, "0 B"},
      {1023, "1023 B"},
      {1024, "1 KiB"},
      {144 * kK, "144 KiB"},
      {36 * kG, "36 GiB"},
      {16381470720, "15.256 GiB"},  // Qwen3-8B in BF16 (product.md)
      {kM - 1, "1023.999 KiB"},
      {kG - 1, "1 GiB"},  // not 1024 MiB
      {kM - 1024, "1023 KiB"},
      {kG * kM, "1 PiB"},
      {kG * kM * 2000, "2000 PiB"},
      {-1536, "-1.5 KiB"},
  };
  for (const auto& [bytes, text] : kCases) EXPECT_EQ(format_size(bytes), text) << bytes;
}

TEST(Size, PrintedSizesReadBackToThreeDecimals) {
  SplitMix64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto bytes = static_cast<std::int64_t>(random.next() >> (8 + random.next() % 50));
    const std::int64_t back = parse_size(format_size(bytes), "test");
    const double bound =
        0.0005 * 1024 / 1000 * static_cast<double>(bytes) + 1;  // half a last digit of at least 1.000
    EXPECT_TRUE(std::abs(static_cast<double>(back - bytes)) <= bound) << bytes << " " << format_size(bytes);
  }
}

}  // namespace
}  // namespace quantmap
