// Rows [begin, end) of something.
#pragma once

#include <cstdint>

namespace quantmap {

struct RowRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

}  // namespace quantmap
