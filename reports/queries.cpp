#include "reports/queries.hpp"

#include <algorithm>
#include <vector>

#include "embedded/queries.hpp"

namespace quantmap {
namespace {

constexpr std::string_view kComment = "-- ";

NamedQuery from_file(std::string_view name, std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return {name, line.starts_with(kComment) ? line.substr(kComment.size()) : std::string_view(), text};
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
