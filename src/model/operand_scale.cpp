#include "model/operand_scale.hpp"

#include <algorithm>
#include <cmath>

#include "core/simd.hpp"
#include "formats/bf16.hpp"

namespace quantmap {
namespace {

QUANTMAP_SIMD void scale_row(const float* x, std::int64_t cols, float row, const float* col, float* y) {
  for (std::int64_t c = 0; c < cols; ++c) y[c] = x[c] * row * col[c];
}

QUANTMAP_SIMD void scale_row_by_one(const float* x, std::int64_t cols, float row, float col, float* y) {
  for (std::int64_t c = 0; c < cols; ++c) y[c] = x[c] * row * col;
}

QUANTMAP_SIMD void add_row(float* y, std::int64_t cols, const float* bias) {
  for (std::int64_t c = 0; c < cols; ++c) y[c] += bias[c];
}

QUANTMAP_SIMD void add_scaled_row(float* y, std::int64_t cols, const float* partial, float factor) {
  for (std::int64_t c = 0; c < cols; ++c) y[c] += partial[c] * factor;
}

}  // namespace

void apply_outer_scaling(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols,
                         float* y, std::int64_t y_stride, const OuterScaling& s) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* from = x + r * x_stride;
    float* to = y + r * y_stride;
    const float row = s.row ? s.row[s.row_count == 1 ? 0 : r] : 1.0f;
    if (s.col && s.col_count != 1)
      scale_row(from, cols, row, s.col, to);
    else if (s.row || s.col)
      scale_row_by_one(from, cols, row, s.col ? s.col[0] : 1.0f, to);
    else if (from != to)
      std::copy(from, from + cols, to);
    if (s.bias) add_row(to, cols, s.bias);
  }
}

void add_scaled_block(const float* partial, std::int64_t rows, std::int64_t cols, const BlockScaling& s,
                      float* y, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float row = s.row ? s.row[r * s.row_stride] : 1.0f;
    // Columns that share a scale go together.
    const std::int64_t run = s.col ? s.col_tile : cols;
    for (std::int64_t begin = 0; begin < cols; begin += run) {
      const std::int64_t length = std::min(run, cols - begin);
      const float col = s.col ? s.col[begin / s.col_tile * s.col_stride] : 1.0f;
      add_scaled_row(y + r * stride + begin, length, partial + r * cols + begin, row * col);
    }
  }
}

std::vector<float> lift_tiny_rows(std::uint16_t* operand, std::int64_t rows, std::int64_t cols) {
  constexpr float kTiny = 0x1p-40f;
  std::vector<float> lift;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::uint16_t* row = operand + r * cols;
    float largest = 0;
    for (std::int64_t c = 0; c < cols; ++c) largest = std::max(largest, std::abs(float_from_bf16(row[c])));
    if (largest == 0 || !(largest < kTiny)) continue;
    int exponent = 0;
    std::frexp(largest, &exponent);
    if (lift.empty()) lift.assign(static_cast<std::size_t>(rows), 1.0f);
    lift[static_cast<std::size_t>(r)] = std::ldexp(1.0f, exponent);
    for (std::int64_t c = 0; c < cols; ++c)
      row[c] = bf16_from_float(std::ldexp(float_from_bf16(row[c]), -exponent));
  }
  return lift;
}

}  // namespace quantmap
