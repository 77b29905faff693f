// `json`: an array of objects, one a line; ASCII only, so that nothing in it can act on a terminal. A number
// that is not finite is null (JSON has no other spelling); columns of one name are told apart by _2, _3, …
#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/formats.hpp"

namespace quantmap {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> distinct_names(const std::vector<Column>& columns) {
  std::vector<std::string> names;
  for (const Column& column : columns) {
    std::string name = column.name;
    for (int n = 2; std::find(names.begin(), names.end(), name) != names.end(); ++n)
      name = column.name + "_" + std::to_string(n);
    names.push_back(name);
  }
  return names;
}

Json to_json(const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

}  // namespace

std::string write_json(const Table& table) {
  const std::vector<std::string> names = distinct_names(table.columns);
  std::string out = "[";
  for (const std::vector<Value>& row : table.rows) {
    Json object = Json::object();
    for (std::size_t c = 0; c < row.size(); ++c) object[names[c]] = to_json(row[c]);
    out += out.size() > 1 ? ",\n  " : "\n  ";
    out += object.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  }
  return out + (table.rows.empty() ? "]\n" : "\n]\n");
}

}  // namespace quantmap
