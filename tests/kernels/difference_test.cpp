#include "kernels/difference/difference.hpp"

#include <limits>

#include "inputs.hpp"
#include "kernels/difference/difference_paths.hpp"

namespace quantmap {
namespace {

using namespace testing;

constexpr float kInf = std::numeric_limits<float>::infinity();
// Around the 16 lanes, and long.
constexpr std::int64_t kCounts[] = {0, 1, 7, 15, 16, 17, 31, 33, 64, 577, 4096};

// Sums of n doubles in another order: n units of double of the sum of sizes.
void expect_close(double got, double want, double sizes, std::int64_t count, const std::string& what) {
  const double bound = static_cast<double>(count) * 0x1p-52 * sizes;
  EXPECT_TRUE(std::abs(got - want) <= bound) << what << ": " << got << " instead of " << want;
}

void expect_same(const RowDifference& got, const RowDifference& want, std::int64_t count,
                 const std::string& what) {
  expect_close(got.error2, want.error2, want.error2, count, what + ", error2");
  expect_close(got.reference2, want.reference2, want.reference2, count, what + ", reference2");
  expect_close(got.value2, want.value2, want.value2, count, what + ", value2");
  expect_close(got.dot, want.dot, std::sqrt(want.reference2) * std::sqrt(want.value2), count, what + ", dot");
  EXPECT_EQ(got.max_error, want.max_error) << what;
  EXPECT_EQ(got.amax, want.amax) << what;
  EXPECT_EQ(got.nonfinite, want.nonfinite) << what;
}

TEST(Difference, EqualsItsReference) {
  for (const InputClass& x_kind : kInputClasses)
    for (const InputClass& y_kind : kInputClasses)
      for (const std::int64_t count : kCounts) {
        const std::vector<float> x = make_input(x_kind, count, 1), y = make_input(y_kind, count, 2);
        expect_same(row_difference(x.data(), y.data(), count), row_difference_ref(x.data(), y.data(), count),
                    count, std::string(x_kind.name) + " and " + y_kind.name + ", " + std::to_string(count));
      }
}

// Results do not depend on the processor: whichever vectors it has, the sums have the same bits.
TEST(Difference, EveryPathOfThisProcessorGivesTheSameBits) {
  const DifferencePath& plain = difference_paths().back();
  for (const DifferencePath& path : difference_paths()) {
    if (!path.runs_here()) continue;
    for (const InputClass& kind : kInputClasses)
      for (const std::int64_t count : kCounts) {
        const std::vector<float> x = make_input(kind, count, 8), y = make_input(kNormal, count, 9);
        RowDifference got, want;
        path.add(x.data(), y.data(), count, nullptr, got);
        plain.add(x.data(), y.data(), count, nullptr, want);
        EXPECT_EQ(got, want) << path.name << ", " << kind.name << ", " << count;
      }
  }
}

TEST(Difference, HandValues) {
  const float x[] = {1, -2, 0, 4}, y[] = {1.5F, -2, -1, 3};
  const RowDifference d = row_difference(x, y, 4);
  EXPECT_EQ(d.error2, 0.25 + 0 + 1 + 1);
  EXPECT_EQ(d.reference2, 1 + 4 + 0 + 16);
  EXPECT_EQ(d.value2, 2.25 + 4 + 1 + 9);
  EXPECT_EQ(d.dot, 1.5 + 4 + 0 + 12);
  EXPECT_EQ(d.max_error, 1.0F);
  EXPECT_EQ(d.amax, 4.0F);
  EXPECT_EQ(d.nonfinite, 0);
}

TEST(Difference, OfEqualRowsIsExactlyZero) {
  for (const InputClass& kind : kInputClasses) {
    const std::vector<float> x = make_input(kind, 577, 3);
    const RowDifference d = row_difference(x.data(), x.data(), 577);
    EXPECT_EQ(d.error2, 0.0) << kind.name;
    EXPECT_EQ(d.max_error, 0.0F) << kind.name;
    EXPECT_EQ(d.reference2, d.dot) << kind.name;
  }
}

struct Fault {
  const char* where;
  float value;
};
// A value that is not finite, on either side, is counted and leaves the sums as if it were not there.
TEST(Difference, CountsNonFiniteValuesAndLeavesThemOut) {
  for (const Fault& fault : {Fault{"y", std::nanf("")}, Fault{"y", kInf}, Fault{"y", -kInf},
                             Fault{"x", std::nanf("")}, Fault{"x", kInf}, Fault{"x", -kInf}})
    for (const std::int64_t count : {1, 17, 64, 577})
      for (const std::int64_t at : {std::int64_t{0}, count / 2, count - 1}) {
        std::vector<float> x = make_input(kNormal, count, 4), y = make_input(kNormal, count, 5);
        std::vector<float> x_rest = x, y_rest = y;
        x_rest.erase(x_rest.begin() + at);
        y_rest.erase(y_rest.begin() + at);
        (fault.where == std::string("x") ? x : y)[static_cast<std::size_t>(at)] = fault.value;
        RowDifference want = row_difference_ref(x_rest.data(), y_rest.data(), count - 1);
        want.nonfinite = 1;
        const std::string what = std::string(fault.where) + " " + std::to_string(fault.value) + " at " +
                                 std::to_string(at) + " of " + std::to_string(count);
        expect_same(row_difference(x.data(), y.data(), count), want, count, what);
        expect_same(row_difference_ref(x.data(), y.data(), count), want, count, what + ", reference");
      }
}

TEST(Difference, OverflowOfFp32IsNoFault) {
  const float x[] = {3e38F, 1}, y[] = {2e38F, 1};
  const RowDifference d = row_difference(x, y, 2);
  EXPECT_TRUE(std::isfinite(d.error2)) << "squares are taken in double";
  EXPECT_EQ(d.nonfinite, 0);
}

struct PeakCase {
  std::vector<float> x;
  std::int64_t index;
  float value;
  const char* reason;
};
TEST(RowPeak, IsTheFirstLargestSize) {
  const float nan = std::nanf("");
  const PeakCase cases[] = {
      {{1, -5, 5, 2}, 1, -5, "sizes count, the first of equals wins, its sign is kept"},
      {{nan, 1, 3}, 2, 3, "NaN first is skipped"},
      {{2, nan, 1}, 0, 2, "NaN later is skipped"},
      {{0, 0}, 0, 0, "all zero"},
      {{1, -kInf, 3}, 1, -kInf, "Inf is the largest"},
  };
  for (const PeakCase& c : cases) {
    const RowPeak peak = row_peak(c.x.data(), static_cast<std::int64_t>(c.x.size()));
    EXPECT_EQ(peak.index, c.index) << c.reason;
    EXPECT_EQ(peak.value, c.value) << c.reason;
  }
}

}  // namespace
}  // namespace quantmap
