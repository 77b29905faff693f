// Sizes in bytes as people write them: 64M, 2G, 512K, 1.5GiB, plain bytes. Units are binary: K = KiB = 1024.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quantmap {

// Throws Error (usage) naming `option` and the text. Letters in either case, one space before the unit
// allowed; a fraction needs a unit and is cut to whole bytes. KB, MB, … are refused: they may mean either.
std::int64_t parse_size(std::string_view text, std::string_view option);

// `15.256 GiB`, `144 KiB`, `17 B`: in the largest unit that leaves at least 1, three decimals, rounded to
// nearest, without zeros at the end.
std::string format_size(std::int64_t bytes);

}  // namespace quantmap
