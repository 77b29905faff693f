// Matrix products on oneDNN: y = x W^T with FP32 accumulation, operands FP32 or BF16. Each call runs on the
// calling thread only; the caller parallelizes over tiles, so that a value's sum has the same order for any
// number of threads. Where the processor has no BF16 products, BF16 operands are widened and multiplied in
// FP32: the same products, FP32 sums (architecture.md, Arithmetic).
#pragma once

#include <cstdint>
#include <memory>

namespace quantmap {

enum class OperandType : std::uint8_t { f32, bf16 };
constexpr std::int64_t operand_bytes(OperandType type) { return type == OperandType::f32 ? 4 : 2; }

// A right-hand side W [n][k], laid out once for many products.
class PackedMatrix {
 public:
  PackedMatrix();
  // w: [n][k] row-major, float or BF16 bits by `type`; copied. `rows`: the usual number of rows of x.
  PackedMatrix(OperandType type, const void* w, std::int64_t n, std::int64_t k, std::int64_t rows);
  PackedMatrix(PackedMatrix&&) noexcept;
  PackedMatrix& operator=(PackedMatrix&&) noexcept;
  ~PackedMatrix();

  OperandType type() const;
  std::int64_t n() const;
  std::int64_t k() const;
  std::int64_t bytes() const;  // allocated

  // y [m][n] = x [m][k] times W^T, both contiguous, x of this matrix's operand type.
  void multiply(const void* x, std::int64_t m, float* y) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};
// Upper bound of PackedMatrix::bytes() for the memory plan.
std::int64_t packed_bytes_bound(OperandType type, std::int64_t n, std::int64_t k);

// One product with a right-hand side used once: y [m][n] = x [m][k] times w, where w is [n][k] (transposed =
// true, as keys) or [k][n] (false, as values) with row stride w_stride; x and y contiguous. (A strided y
// would send oneDNN 2.6 to its reference implementation.)
void multiply_once(OperandType type, const void* x, std::int64_t m, std::int64_t k, const void* w,
                   std::int64_t w_stride, bool transposed, std::int64_t n, float* y);

bool has_bf16_products();  // of this processor, through oneDNN

// Naive, double sums, plain operands; the same signature as multiply_once.
void multiply_ref(OperandType type, const void* x, std::int64_t m, std::int64_t k, const void* w,
                  std::int64_t w_stride, bool transposed, std::int64_t n, float* y);

}  // namespace quantmap
