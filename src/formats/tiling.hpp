// Which scale a value belongs to: the tiles (band x run) of a matrix that share one, in the order of
// OuterScale's arrays (quantize.hpp).
#pragma once

#include "core/simd.hpp"
#include "formats/spec.hpp"

namespace quantmap {

struct Tiling {
  std::int64_t rows, cols;
  std::int64_t band = 1, run, across;
  Tiling(const QuantSpec& spec, std::int64_t of_rows, std::int64_t of_cols)
      : rows(of_rows), cols(of_cols), run(of_cols) {
    switch (spec.granularity) {
      case Granularity::tensor:
        band = rows;
        break;
      case Granularity::column:
        band = rows, run = 1;
        break;
      case Granularity::group:
        run = spec.group;
        break;
      case Granularity::tile:
        band = spec.tile_rows, run = spec.tile_cols;
        break;
      case Granularity::row:
      case Granularity::own:
        break;
    }
    across = (cols + run - 1) / run;
  }
  std::int64_t count() const { return (rows + band - 1) / band * across; }
  QUANTMAP_HD std::int64_t index(std::int64_t row, std::int64_t col) const {
    return row / band * across + col / run;
  }
};

}  // namespace quantmap
