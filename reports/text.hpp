// Text and numbers as the writers print them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/table.hpp"

namespace quantmap {

// Data may hold anything: what could move a terminal's cursor or reverse a line (control characters, line and
// paragraph separators, bidirectional controls) and bytes that are not UTF-8 become \xNN or \u{N}. With
// keep_lines, tab, CR and LF stay.
std::string printable(std::string_view text, bool keep_lines = false);

// Terminal columns of well-formed UTF-8: 2 for wide East Asian characters, 0 for combining marks.
std::size_t display_width(std::string_view text);

// A number with `digits` significant digits, whole numbers plainly and exactly (a KL of 0 is exactly 0, bytes
// are counts). Plain notation from 1e-4 to 1e15.
std::string short_number(double value, int digits);
// The shortest text that reads back as the same double.
std::string full_number(double value);

// A value as `table` and `md` show it: null is `-`.
std::string shown(const Value& value, const Column& column);

// Numbers, or numbers and nulls: aligned to the right.
bool is_numeric(const Table& table, std::size_t column);

}  // namespace quantmap
