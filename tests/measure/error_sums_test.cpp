#include "measure/error_sums.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"

namespace quantmap {
namespace {

struct Row {
  double error2, reference2, value2, dot;
  float max_error, amax;
  std::int64_t nonfinite, count;
};
void add(ErrorSums& sums, const Row& r) {
  sums.add_row(r.error2, r.reference2, r.value2, r.dot, r.max_error, r.amax, r.nonfinite, r.count);
}
// Sums of small integers: exact in any order, so that grouping may be compared bit by bit.
std::vector<Row> integer_rows(int count, std::uint64_t seed) {
  SplitMix64 random(seed);
  const auto draw = [&](std::uint64_t below) { return static_cast<double>(random.next() % below); };
  std::vector<Row> rows;
  for (int i = 0; i < count; ++i)
    rows.push_back({draw(100), draw(10000), draw(10000), draw(9000), static_cast<float>(draw(10)),
                    static_cast<float>(draw(100)), static_cast<std::int64_t>(draw(3)), 64});
  rows[0] = {0, 0, 0, 0, 0, 0, 0, 64};  // an all-zero row
  return rows;
}

// A scheme that diverged must not look perfect.
TEST(ErrorSums, ARowThatIsNotFiniteIsNoSmallError) {
  ErrorSums diverged;
  add(diverged, {0, 0, 0, 0, 0, 0, 64, 64});
  EXPECT_FALSE(diverged.relative_error().has_value());
  EXPECT_FALSE(diverged.rows().quantile(0.5).has_value());
  ErrorSums partly;
  add(partly, {1, 4, 4, 4, 1, 2, 1, 64});
  EXPECT_EQ(partly.relative_error(), 0.5);
  EXPECT_FALSE(partly.rows().quantile(0.5).has_value());
}

TEST(ErrorSums, MergedPartsEqualTheWhole) {
  const std::vector<Row> rows = integer_rows(200, 1);
  ErrorSums whole;
  for (const Row& row : rows) add(whole, row);
  for (const std::size_t part : {1U, 3U, 64U, 199U, 200U}) {
    ErrorSums merged;
    for (std::size_t begin = 0; begin < rows.size(); begin += part) {
      ErrorSums sums;
      for (std::size_t i = begin; i < std::min(begin + part, rows.size()); ++i) add(sums, rows[i]);
      merged.merge(sums);
    }
    EXPECT_EQ(merged, whole) << "parts of " << part;
  }
  EXPECT_EQ(whole.count(), 200 * 64);
  EXPECT_EQ(whole.rows().count(), 200U);
  ErrorSums with_nothing = whole;
  with_nothing.merge(ErrorSums{});
  EXPECT_EQ(with_nothing, whole);
}

TEST(ErrorSums, PackAndUnpackKeepEveryBit) {
  ErrorSums first, second;
  for (const Row& row : integer_rows(50, 2)) add(first, row);
  add(first, {0.1, 1.0 / 3, 2.0 / 7, 1e-300, 0.1F, 3e38F, 1, 64});
  for (const Row& row : integer_rows(3, 3)) add(second, row);
  const std::string packed = first.pack() + second.pack();  // one after the other, as they are stored
  std::size_t at = 0;
  EXPECT_EQ(ErrorSums::unpack(packed, at), first);
  EXPECT_EQ(ErrorSums::unpack(packed, at), second);
  EXPECT_EQ(at, packed.size());
}

TEST(ErrorSums, AShortPackIsRefused) {
  const std::string packed = ErrorSums{}.pack();
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{64}, packed.size() - 1}) {
    std::size_t at = 0;
    EXPECT_THROW(ErrorSums::unpack(std::string_view(packed).substr(0, length), at), Error) << length;
  }
}

struct Reading {
  Row row;
  std::optional<double> relative, sqnr_db, cosine;
  const char* reason;
};
constexpr std::optional<double> kUndefined;

TEST(ErrorSums, ReadsWhatTheRowSays) {
  const Reading cases[] = {
      {{0, 0, 0, 0, 0, 0, 0, 4}, 0.0, kUndefined, kUndefined, "fault B07: nothing became nothing, no error"},
      {{2, 0, 2, 0, 1, 0, 0, 4},
       kUndefined,
       kUndefined,
       kUndefined,
       "a zero reference with error is undefined"},
      {{0, 25, 25, 25, 0, 4, 0, 2}, 0.0, kUndefined, 1.0, "no error: no finite SQNR"},
      {{25, 25, 0, 0, 4, 4, 0, 2}, 1.0, 0.0, kUndefined, "everything rounded to zero"},
      {{1, 100, 81, 90, 1, 10, 0, 1}, 0.1, 20.0, 1.0, "10 became 9"},
      {{4, 1, 1, -1, 2, 1, 0, 1}, 2.0, -20 * std::log10(2.0), -1.0, "1 became -1"},
  };
  const auto near = [](const std::optional<double>& got, const std::optional<double>& want,
                       const char* reason) {
    ASSERT_EQ(got.has_value(), want.has_value()) << reason;
    if (want) {
      EXPECT_NEAR(*got, *want, 1e-12) << reason;
    }
  };
  for (const Reading& c : cases) {
    ErrorSums sums;
    add(sums, c.row);
    near(sums.relative_error(), c.relative, c.reason);
    near(sums.sqnr_db(), c.sqnr_db, c.reason);
    near(sums.cosine(), c.cosine, c.reason);
    EXPECT_EQ(sums.max_error(), c.row.max_error) << c.reason;
    EXPECT_EQ(sums.amax(), c.row.amax) << c.reason;
  }
}

TEST(ErrorSums, OfNothingIsNoErrorOfNoValues) {
  const ErrorSums sums;
  EXPECT_EQ(sums.count(), 0);
  EXPECT_EQ(sums.relative_error(), 0.0);
  EXPECT_FALSE(sums.cosine());
  EXPECT_FALSE(sums.rows().quantile(0.5));
}

// One massive row owns the pooled error; the rows beside it are still seen.
TEST(ErrorSums, TheMedianRowIsNotHiddenByALargeOne) {
  ErrorSums sums;
  add(sums, {1e4, 1e8, 1e8, 1e8, 1, 1e4F, 0, 64});                     // relative error 0.01
  for (int i = 0; i < 9; ++i) add(sums, {64, 64, 0, 0, 1, 1, 0, 64});  // relative error 1: rounded to zero
  EXPECT_LT(*sums.relative_error(), 0.011);
  EXPECT_NEAR(*sums.rows().quantile(0.5), 1.0, 0.024);
}

TEST(ErrorSums, ARowWithErrorAndNoReferenceCountsAsLargest) {
  ErrorSums sums;
  add(sums, {1, 0, 1, 0, 1, 0, 0, 4});
  add(sums, {1, 100, 81, 90, 1, 10, 0, 4});
  EXPECT_NEAR(*sums.rows().quantile(0.5), 0.1, 0.1 * 0.024);
  EXPECT_FALSE(sums.rows().quantile(1.0));
}

}  // namespace
}  // namespace quantmap
