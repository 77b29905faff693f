// JSON files of a checkpoint, read strictly: a key that occurs twice in one object is an error (a plain
// parser would silently keep one of the values), and so is nesting without end.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace quantmap {

// Throws Error (input) `WHAT: FILE: …` with the byte where the text stops being JSON, or the key that occurs
// twice.
nlohmann::json parse_json(std::string_view text, std::string_view what, const std::string& file);

// `an integer 7`, `a string "abc"`, `null`: a value as an error line names it.
std::string describe(const nlohmann::json& value);

}  // namespace quantmap
