// One table, four spellings. `table`: aligned text for a terminal, with a title and notes; numbers
// right-aligned with the column's significant digits (whole numbers in full), null as `-`; columns that do
// not fit the width are folded into further blocks that repeat the first column, so nothing is cut. `csv`:
// RFC 4180 (lines end in CR LF), every digit, null an empty field and an empty text `""`. `json`: an array of
// objects, null for null, every digit (17 significant), ASCII. `md`: a GitHub table, with title and notes;
// text escaped. In all four, control characters of the data and bytes that are not UTF-8 never come out raw:
// they are written as \xNN or \u{N} (JSON: as JSON escapes them; CSV keeps tabs and line ends).
#pragma once

#include <string>
#include <string_view>

#include "core/table.hpp"

namespace quantmap {

enum class OutputFormat { table, json, csv, md };
OutputFormat parse_output_format(std::string_view name);  // Error (usage) naming the four

std::string write(const Table& table, OutputFormat format, int width = 80);
int terminal_width(int fallback = 80);  // of stdout; `COLUMNS` if set; fallback where it is no terminal

}  // namespace quantmap
