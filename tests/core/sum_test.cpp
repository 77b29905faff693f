#include "core/sum.hpp"

#include <gtest/gtest.h>

namespace quantmap {
namespace {

// Priest's example (gemma.cpp's distortion test uses the same idea): naive and Kahan summation give 0.
TEST(Sum, KeepsWhatCancellationWouldLose) {
  Sum sum;
  for (const double term : {1.0, 1e100, 1.0, -1e100}) sum.add(term);
  EXPECT_EQ(sum.value(), 2.0);
}

TEST(Sum, MergingPartsEqualsWhole) {
  Sum whole, left, right, empty;
  for (int i = 0; i < 1000; ++i) {
    const double term = (i % 2 ? -1.0 : 1.0) * 1e10 / (i + 1) + 1e-8;
    whole.add(term);
    (i < 333 ? left : right).add(term);
  }
  left.merge(right);
  left.merge(empty);
  EXPECT_DOUBLE_EQ(left.value(), whole.value());
}

}  // namespace
}  // namespace quantmap
