#include <fmt/format.h>

#include "app/options.hpp"
#include "core/error.hpp"
#include "reports/queries.hpp"
#include "store/database.hpp"

namespace quantmap {
namespace {

namespace po = boost::program_options;

CommandSpec query_spec() {
  CommandSpec spec;
  spec.name = "query";
  spec.usage = "[NAME | --sql \"SELECT …\"] [--db FILE]";
  spec.does =
      "Named questions, or read-only SQL, on the results database. Without either: the list of questions.";
  po::options_description options("Options of query");
  options.add_options()                                                      //
      ("name", po::value<std::string>(), "a named question (or its place)")  //
      ("sql", po::value<std::string>(), "one SELECT");
  spec.options.add(options);
  spec.positionals = {"name"};
  spec.examples =
      "  quantmap query latest\n"
      "  quantmap query --sql \"SELECT scheme, kl_mean FROM evaluations ORDER BY kl_mean\" --format csv\n";
  return spec;
}

Table questions() {
  Table table;
  table.title = "Questions: quantmap query NAME";
  table.columns = {{"name"}, {"question"}};
  for (const NamedQuery& query : named_queries())
    table.rows.push_back({std::string(query.name), std::string(query.question)});
  return table;
}

}  // namespace

int run_query(const CommandLine& line) {
  CommonOptions common;
  const auto values = parse_command(line, query_spec(), common);
  if (!values) return 0;
  if (values->count("name") && values->count("sql")) fail_usage("query", "give a NAME or --sql, not both");
  Table table;
  if (values->count("sql")) {
    table = query_database(common.db, (*values)["sql"].as<std::string>());
  } else if (values->count("name")) {
    const std::string name = (*values)["name"].as<std::string>();
    const NamedQuery* query = find_query(name);
    if (!query) {
      std::string known;
      for (const NamedQuery& one : named_queries()) known.append(known.empty() ? "" : ", ").append(one.name);
      fail_usage("query", "no question " + quoted(name) + " (the questions are " + known + ")");
    }
    table = query_database(common.db, query->sql);
    table.title = query->question;
  } else {
    table = questions();
  }
  emit(common, write(table, common.format, output_width(common)));
  return 0;
}

}  // namespace quantmap
