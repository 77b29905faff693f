// A measured number that may be undefined.
#pragma once

#include <optional>

namespace quantmap {

// Empty: undefined or not finite, with the reason in a `status` beside it (product.md, Honesty of numbers).
using Number = std::optional<double>;

}  // namespace quantmap
