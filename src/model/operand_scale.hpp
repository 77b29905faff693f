// The part of a product that is applied outside its sums: scales of rows (activations) and columns (weights).
#pragma once

#include <cstdint>
#include <vector>

namespace quantmap {

// y[r][c] = fl(fl(x[r][c] * row(r)) * col(c)) + bias[c]; x and y: [rows][cols] with their own row strides,
// may be the same. row and col: one value each if their count is 1, else one a row or column; null: 1. bias:
// null or [cols].
struct OuterScaling {
  const float* row = nullptr;
  std::int64_t row_count = 0;
  const float* col = nullptr;
  std::int64_t col_count = 0;
  const float* bias = nullptr;
};
void apply_outer_scaling(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols,
                         float* y, std::int64_t y_stride, const OuterScaling& scaling);

// y += partial * (row scale * column scale), for one k block. partial: [rows][cols] contiguous; row: value
// for row r at row[r * row_stride] or null; col: value for column c at col[(c / col_tile) * col_stride] or
// null.
struct BlockScaling {
  const float* row = nullptr;
  std::int64_t row_stride = 0;
  const float* col = nullptr;
  std::int64_t col_stride = 0, col_tile = 1;
};
void add_scaled_block(const float* partial, std::int64_t rows, std::int64_t cols, const BlockScaling& scaling,
                      float* y, std::int64_t stride);

// oneDNN flushes BF16 subnormals. Rows whose largest value is tiny are scaled up by a power of two, exactly,
// and the factor that undoes it is returned for every row (empty: no row needed it). What stays subnormal
// then is below 2^-80 of its row's largest value. operand: BF16 bits [rows][cols].
std::vector<float> lift_tiny_rows(std::uint16_t* operand, std::int64_t rows, std::int64_t cols);

}  // namespace quantmap
