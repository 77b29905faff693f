#include "reports/queries.hpp"

#include <algorithm>
#include <vector>

#include "embedded/queries.hpp"

namespace quantmap {
namespace {

constexpr std::string_view kComment = "-- ";

NamedQuery from_file(std::string_view name, std::string_view text) {
  NamedQuery query{name, "", text, {}};
  for (std::string_view rest = text; rest.starts_with(kComment);) {
    const std::string_view line = rest.substr(kComment.size(), rest.find('\n') - kComment.size());
    rest.remove_prefix(std::min(rest.size(), kComment.size() + line.size() + 1));
    if (query.question.empty()) {
      query.question = line;
      continue;
    }
    const std::size_t space = line.find(' '), colon = line.find(": ");
    if (!line.starts_with(':') || space == std::string_view::npos || colon == std::string_view::npos)
      continue;
    query.parameters.push_back(
        {line.substr(1, space - 1), line.substr(space + 1, colon - space - 1), line.substr(colon + 2)});
  }
  return query;
}

}  // namespace

std::span<const NamedQuery> named_queries() {
  static const std::vector<NamedQuery> queries = [] {
    std::vector<NamedQuery> all;
    all.reserve(embedded::queries.size());
    for (const auto& [name, text] : embedded::queries) all.push_back(from_file(name, text));
    return all;
  }();
  return queries;
}

const NamedQuery* find_query(std::string_view name) {
  const std::span<const NamedQuery> all = named_queries();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const NamedQuery& q) { return q.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace quantmap
