// What every JSON document says about its run before its rows. Not for other stages.
#pragma once

#include <nlohmann/json.hpp>

#include "core/number.hpp"
#include "core/table.hpp"
#include "store/records.hpp"

namespace quantmap {

inline nlohmann::ordered_json json_of(const Number& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
}

// `run`, `model`, `fingerprints`, `protocol`.
nlohmann::ordered_json run_document(const RunRecord& run);
// The run's notes: an array of strings.
nlohmann::ordered_json run_notes(const RunRecord& run);

// A row's fields as values of a table; the first row also names the columns.
void add_row(Table& table, const nlohmann::ordered_json& fields);

}  // namespace quantmap
