// What `inspect` prints.
#pragma once

#include <string>

#include "app/model_source.hpp"
#include "map/inspection.hpp"
#include "reports/writers.hpp"

namespace quantmap {

std::string write_inspection(const ModelSource& source, const Inspection& inspection, bool tensors,
                             OutputFormat format, int width);

// The three choices as rows, for `inspect` and the first look.
Table choices_table(const std::string& title, const Inspection& inspection);

// `int4, groups of 128, symmetric`: one choice in words.
std::string choice_text(const std::optional<NumberChoice>& choice);

}  // namespace quantmap
