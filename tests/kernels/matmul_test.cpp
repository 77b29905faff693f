#include "kernels/matmul/matmul.hpp"

#include <algorithm>
#include <thread>

#include "inputs.hpp"

namespace quantmap {
namespace {

using namespace testing;

// Values in the operand type's own storage.
struct Operand {
  std::vector<float> wide;
  std::vector<std::uint16_t> narrow;
  OperandType type;
  Operand(OperandType t, std::vector<float> values) : wide(std::move(values)), type(t) {
    if (type == OperandType::f32) return;
    narrow = as_bf16(wide);
    for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = float_from_bf16(narrow[i]);
  }
  const void* data(std::int64_t from = 0) const {
    return type == OperandType::f32 ? static_cast<const void*>(wide.data() + from) : narrow.data() + from;
  }
};
const char* name(OperandType type) { return type == OperandType::f32 ? "f32" : "bf16"; }

struct Shape {
  std::int64_t m, n, k;
};
constexpr Shape kShapes[] = {
    {1, 1, 1},                        // one product
    {1, 17, 31},    {3, 1, 33},       // vectors on either side
    {2, 3, 20},     {5, 64, 17},      // k below and beside every block
    {63, 65, 100},  {65, 63, 577},    // around 64 in rows and columns, k prime to all
    {128, 96, 192}, {130, 20, 1536},  // whole tiles; a tall one with a deep sum
};

// FP32 sums of k products in any order: (k + 2) units of the sum of sizes. Products below the smallest number
// of their arithmetic vanish; BF16 products may also take subnormal operands and sums as zero.
struct Bounds {
  std::vector<double> of;
  Bounds(const Operand& x, const Operand& w, const Shape& s, bool transposed, std::int64_t w_stride) {
    for (std::int64_t r = 0; r < s.m; ++r)
      for (std::int64_t c = 0; c < s.n; ++c) {
        double sizes = 0, lost = 0;
        for (std::int64_t i = 0; i < s.k; ++i) {
          const double a = std::abs(x.wide[static_cast<std::size_t>(r * s.k + i)]);
          const double b =
              std::abs(w.wide[static_cast<std::size_t>(transposed ? c * w_stride + i : i * w_stride + c)]);
          sizes += a * b;
          lost += x.type == OperandType::f32 ? kSubnormal : kSmallestNormal * (2 + a + b);
        }
        of.push_back(static_cast<double>(s.k + 2) * kUnit * sizes + lost + kSubnormal);
      }
  }
};

TEST(Matmul, EqualsItsReferenceWithinRounding) {
  for (const OperandType type : {OperandType::f32, OperandType::bf16})
    for (const InputClass& kind : kInputClasses)
      for (const Shape& s : kShapes) {
        const Operand x(type, make_input(kind, s.m * s.k, 1)), w(type, make_input(kNormal, s.n * s.k, 2));
        const auto size = static_cast<std::size_t>(s.m * s.n);
        std::vector<float> got(size), want(size);
        const Bounds bounds(x, w, s, true, s.k);
        const auto bound = [&](std::size_t i) { return bounds.of[i]; };
        const std::string what = std::string(name(type)) + ", " + kind.name + ", " + std::to_string(s.m) +
                                 " x " + std::to_string(s.k) + " x " + std::to_string(s.n);
        multiply_ref(type, x.data(), s.m, s.k, w.data(), s.k, true, s.n, want.data());
        PackedMatrix(type, w.data(), s.n, s.k, 128).multiply(x.data(), s.m, got.data());
        expect_within(got, want, what + ", packed", bound);
        std::fill(got.begin(), got.end(), NAN);
        multiply_once(type, x.data(), s.m, s.k, w.data(), s.k, true, s.n, got.data());
        expect_within(got, want, what + ", once", bound);
      }
}

// As attention uses it: keys as [n][k], values as [k][n], both inside wider rows.
TEST(Matmul, OnceTakesRowsOfAWiderMatrix) {
  for (const OperandType type : {OperandType::f32, OperandType::bf16})
    for (const bool transposed : {true, false})
      for (const Shape& s : kShapes) {
        const std::int64_t w_stride = (transposed ? s.k : s.n) + 9, w_rows = transposed ? s.n : s.k;
        const Operand x(type, make_input(kHeavyTailed, s.m * s.k, 3));
        const Operand w(type, make_input(kNormal, w_rows * w_stride, 4));
        const auto size = static_cast<std::size_t>(s.m * s.n);
        std::vector<float> got(size, NAN), want(size);
        multiply_ref(type, x.data(), s.m, s.k, w.data(), w_stride, transposed, s.n, want.data());
        multiply_once(type, x.data(), s.m, s.k, w.data(), w_stride, transposed, s.n, got.data());
        const Bounds bounds(x, w, s, transposed, w_stride);
        expect_within(got, want, std::string(name(type)) + (transposed ? ", transposed" : ", plain"),
                      [&](std::size_t i) { return bounds.of[i]; });
      }
}

// Small integers: every product and sum is exact, so any order gives the same, and a wrong index shows.
TEST(Matmul, IsExactOnSmallIntegers) {
  for (const OperandType type : {OperandType::f32, OperandType::bf16})
    for (const Shape& s : kShapes) {
      std::vector<float> a, b;
      SplitMix64 random(5);
      for (std::int64_t i = 0; i < s.m * s.k; ++i) a.push_back(static_cast<float>(random.next() % 17) - 8);
      for (std::int64_t i = 0; i < s.n * s.k; ++i) b.push_back(static_cast<float>(random.next() % 255) - 127);
      const Operand x(type, a), w(type, b);
      const auto size = static_cast<std::size_t>(s.m * s.n);
      std::vector<float> packed(size), once(size), want(size);
      multiply_ref(type, x.data(), s.m, s.k, w.data(), s.k, true, s.n, want.data());
      PackedMatrix(type, w.data(), s.n, s.k, 128).multiply(x.data(), s.m, packed.data());
      multiply_once(type, x.data(), s.m, s.k, w.data(), s.k, true, s.n, once.data());
      EXPECT_EQ(packed, want) << name(type);
      EXPECT_EQ(once, want) << name(type);
    }
}

struct RowsCase {
  OperandType type;
  std::int64_t n, k;
};
constexpr RowsCase kRowsCases[] = {
    {OperandType::f32, 96, 192},  {OperandType::bf16, 96, 192}, {OperandType::f32, 100, 77},
    {OperandType::bf16, 100, 77}, {OperandType::f32, 64, 1100}, {OperandType::bf16, 64, 1100},
};

// Cutting a window into tiles must not change it: a row's result does not depend on how many rows go along.
TEST(Matmul, ARowsBitsDoNotDependOnTheNumberOfRows) {
  if (!has_bf16_products())
    GTEST_SKIP()
        << "oneDNN's FP32 gemm for processors without AVX-512 chooses its kernel by the number of rows";
  constexpr std::int64_t kMost = 130, kTile = 128;
  for (const RowsCase& c : kRowsCases) {
    const Operand x(c.type, make_input(kNormal, kMost * c.k, 6)),
        w(c.type, make_input(kNormal, c.n * c.k, 7));
    const PackedMatrix packed(c.type, w.data(), c.n, c.k, kTile);
    std::vector<float> whole(static_cast<std::size_t>(kTile * c.n)),
        part(static_cast<std::size_t>(kMost * c.n));
    packed.multiply(x.data(), kTile, whole.data());
    for (std::int64_t m = 1; m <= kMost; ++m) {
      packed.multiply(x.data(), m, part.data());
      for (std::int64_t r = 0; r < std::min(m, kTile); ++r)
        ASSERT_TRUE(same_bits({part.data() + r * c.n, static_cast<std::size_t>(c.n)},
                              {whole.data() + r * c.n, static_cast<std::size_t>(c.n)}))
            << name(c.type) << ", n " << c.n << ", k " << c.k << ": row " << r << " of " << m;
    }
  }
}

// Threads that share a matrix, or race to make one shape's product first, get the bits of one thread alone.
TEST(Matmul, ManyThreadsGetTheSameBits) {
  constexpr std::size_t kThreads = 4;
  constexpr int kRounds = 3;
  for (const RowsCase& c : kRowsCases)
    for (const std::int64_t m : {7, 64, 128}) {
      const std::int64_t k = c.k + 3;  // shapes that no other test has made yet
      const Operand x(c.type, make_input(kNormal, m * k, 8)), w(c.type, make_input(kNormal, c.n * k, 9));
      const PackedMatrix packed(c.type, w.data(), c.n, k, 128);
      const auto size = static_cast<std::size_t>(m * c.n);
      std::vector<std::vector<float>> results(2 * kThreads, std::vector<float>(size));
      std::vector<std::thread> threads;
      for (std::size_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
          for (int round = 0; round < kRounds; ++round) {
            packed.multiply(x.data(), m, results[2 * t].data());
            multiply_once(c.type, x.data(), m, k, w.data(), k, true, c.n, results[2 * t + 1].data());
          }
        });
      for (std::thread& thread : threads) thread.join();
      std::vector<float> alone(size), once_alone(size);
      packed.multiply(x.data(), m, alone.data());
      multiply_once(c.type, x.data(), m, k, w.data(), k, true, c.n, once_alone.data());
      for (std::size_t t = 0; t < kThreads; ++t) {
        EXPECT_TRUE(same_bits(results[2 * t], alone)) << name(c.type) << ", m " << m;
        EXPECT_TRUE(same_bits(results[2 * t + 1], once_alone)) << name(c.type) << ", once, m " << m;
      }
    }
}

TEST(Matmul, PackedSizesAreBounded) {
  for (const OperandType type : {OperandType::f32, OperandType::bf16})
    for (const Shape& s : kShapes) {
      const Operand w(type, make_input(kNormal, s.n * s.k, 2));
      const PackedMatrix packed(type, w.data(), s.n, s.k, 128);
      EXPECT_EQ(packed.n(), s.n);
      EXPECT_EQ(packed.k(), s.k);
      EXPECT_EQ(packed.type(), type);
      EXPECT_GE(packed.bytes(), s.n * s.k * operand_bytes(type));
      EXPECT_LE(packed.bytes(), packed_bytes_bound(type, s.n, s.k))
          << name(type) << " " << s.n << " x " << s.k;
    }
  EXPECT_EQ(PackedMatrix().bytes(), 0);
}

}  // namespace
}  // namespace quantmap
