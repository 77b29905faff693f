// Amounts as people read them; what is undefined is `-`. Not for other stages.
#pragma once

#include <string>

#include "core/number.hpp"

namespace quantmap {

// `0.01230 ± 0.00041`: the error with two significant digits, the value to the same place; to `least_place`
// decimals at least.
std::string with_error(const Number& value, const Number& error, int least_place = 0);
// Three significant digits, trailing zeros kept.
std::string three_digits(const Number& value);
// Of a share, without the sign: `93.54`.
std::string percent(const Number& value);
std::string bytes_text(const Number& bytes);
// Kilobytes where they are whole, as people quote a cache: `144 KiB`.
std::string cache_text(const Number& bytes);

}  // namespace quantmap
