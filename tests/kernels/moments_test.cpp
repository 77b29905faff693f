#include "kernels/moments/moments.hpp"

#include "inputs.hpp"

namespace quantmap {
namespace {

using namespace testing;

TEST(RowMoments, FastEqualsReference) {
  for (const InputClass& kind : kInputClasses)
    for (const std::int64_t count : {0, 1, 2, 15, 16, 17, 577, 4099}) {
      const std::vector<float> x = make_input(kind, count, 3);
      const RowMoments fast = row_moments(x.data(), count), slow = row_moments_ref(x.data(), count);
      const std::string what = std::string(kind.name) + ", " + std::to_string(count);
      EXPECT_EQ(fast.count, slow.count) << what;
      const double n = static_cast<double>(count), size = std::sqrt(slow.m2 / std::max(1.0, n));
      EXPECT_TRUE(!(std::abs(fast.mean - slow.mean) > 1e-13 * (size + std::abs(slow.mean)))) << what;
      EXPECT_TRUE(!(std::abs(fast.m2 - slow.m2) > 1e-12 * slow.m2)) << what;
      EXPECT_TRUE(!(std::abs(fast.m3 - slow.m3) > 1e-12 * n * std::pow(size, 3) * std::sqrt(n))) << what;
      EXPECT_TRUE(!(std::abs(fast.m4 - slow.m4) > 1e-12 * slow.m4)) << what;
    }
}

TEST(RowMoments, LeaveOutWhatIsNotFinite) {
  std::vector<float> x = make_input(kNormal, 40, 4);
  const RowMoments whole = row_moments(x.data(), 40);
  x.insert(x.begin() + 7, {NAN, INFINITY, -INFINITY});
  const RowMoments with = row_moments(x.data(), 43);
  EXPECT_EQ(with.count, 40);
  EXPECT_NEAR(with.m4, whole.m4, 1e-12 * whole.m4);
  for (float& value : x) value = NAN;
  EXPECT_EQ(row_moments(x.data(), 43).count, 0);
}

}  // namespace
}  // namespace quantmap
