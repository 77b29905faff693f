// Named questions: each is a file reports/queries/NAME.sql whose first comment line says what it answers;
// compiled in. `quantmap query` lists them, `quantmap query NAME` asks one.
#pragma once

#include <span>
#include <string_view>

namespace quantmap {

struct NamedQuery {
  std::string_view name, question, sql;
};
std::span<const NamedQuery> named_queries();
const NamedQuery* find_query(std::string_view name);  // null if there is none

}  // namespace quantmap
