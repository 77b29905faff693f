#include <algorithm>
#include <memory>

#include "kernels/quantize_error/quantize_error.hpp"

namespace quantmap {
namespace {

// Values quantized before they are measured: 16 KiB, half of a first-level cache.
constexpr std::int64_t kPieceValues = 4096;

}  // namespace

void quantize_error(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x,
                    const TensorRange* range, RowDifference* errors, QuantCounts* counts) {
  TensorRange own;
  if (!range && spec.needs_tensor_range()) {
    own = measure_range({x, static_cast<std::size_t>(rows * cols)});
    range = &own;
  }
  const std::int64_t least = piece_rows(spec, rows, cols);
  const std::int64_t fitting = kPieceValues / std::max<std::int64_t>(cols, 1) / least;
  const std::int64_t step =
      std::min(std::max<std::int64_t>(rows, 1), least * std::max<std::int64_t>(fitting, 1));
  const auto q = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(step * cols));
  for (std::int64_t first = 0; first < rows; first += step) {
    const std::int64_t count = std::min(step, rows - first);
    const float* piece = x + first * cols;
    quantize_dequantize(spec, count, cols, piece, q.get(), range, counts);
    for (std::int64_t r = 0; r < count; ++r) {
      const bool more = first + step + r < rows;
      errors[first + r] = row_difference(piece + r * cols, q.get() + r * cols, cols,
                                         more ? piece + (step + r) * cols : nullptr);
    }
  }
}

}  // namespace quantmap
