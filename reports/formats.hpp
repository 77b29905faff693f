// One writer for each output format (writers.hpp says what each promises).
#pragma once

#include <string>

#include "core/table.hpp"

namespace quantmap {

std::string write_text(const Table& table, int width);
std::string write_csv(const Table& table);
std::string write_json(const Table& table);
std::string write_markdown(const Table& table);

}  // namespace quantmap
