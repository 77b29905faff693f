// Named questions: each is a file reports/queries/NAME.sql, compiled in. Its first comment line says what it
// answers; lines `-- :NAME TYPE: …` behind it name its parameters, each of which may be left out (null).
// `quantmap query` lists them, `quantmap query NAME --set NAME=VALUE` asks one.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace quantmap {

struct QueryParameter {
  std::string_view name, type, meaning;  // type: integer | number | text
};
struct NamedQuery {
  std::string_view name, question, sql;
  std::vector<QueryParameter> parameters;
};
std::span<const NamedQuery> named_queries();
const NamedQuery* find_query(std::string_view name);  // null if there is none

}  // namespace quantmap
