#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "app/options.hpp"
#include "app/outdated.hpp"
#include "core/error.hpp"
#include "reports/queries.hpp"
#include "store/database.hpp"

namespace quantmap {
namespace {

namespace po = boost::program_options;

CommandSpec query_spec() {
  CommandSpec spec;
  spec.name = "query";
  spec.usage = "[NAME | --sql \"SELECT …\"] [--set PARAMETER=VALUE…] [--db FILE]";
  spec.does =
      "Named questions, or read-only SQL, on the results database. Without either: the list of questions.";
  po::options_description options("Options of query");
  options.add_options()                                                                   //
      ("name", po::value<std::string>(), "a named question (or its place)")               //
      ("sql", po::value<std::string>(), "one SELECT; :name stands for a value of --set")  //
      ("set", po::value<std::vector<std::string>>()->multitoken(),
       "PARAMETER=VALUE: of the question, run=3 for another run than the latest");
  spec.options.add(options);
  spec.positionals = {"name"};
  spec.examples =
      "  quantmap query latest\n"
      "  quantmap query best --set max_gib=5 tokens=32768\n"
      "  quantmap query --sql \"SELECT scheme, kl_mean FROM evaluations ORDER BY kl_mean\" --format csv\n";
  return spec;
}

Table questions() {
  Table table;
  table.title = "Questions: quantmap query NAME [--set PARAMETER=VALUE…]";
  table.columns = {{"name"}, {"question"}, {"parameters"}};
  for (const NamedQuery& query : named_queries()) {
    std::string parameters;
    for (const QueryParameter& one : query.parameters)
      parameters.append(parameters.empty() ? "" : " ").append(one.name);
    table.rows.push_back({std::string(query.name), std::string(query.question), parameters});
  }
  return table;
}

template <class T>
bool parses(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// type: of a QueryParameter; empty: the narrowest that the text is.
Value value_of(const std::string& name, const std::string& text, std::string_view type) {
  std::int64_t integer = 0;
  double number = 0;
  if (type == "text") return text;
  if (type != "number" && parses(text, integer)) return integer;
  if (type != "integer" && parses(text, number)) return number;
  if (!type.empty())
    fail_usage("--set", fmt::format("{} is no {} (for the parameter {})", quoted(text), type, name));
  return text;
}

std::vector<std::pair<std::string, std::string>> settings(const po::variables_map& values) {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (!values.count("set")) return pairs;
  for (const std::string& word : values["set"].as<std::vector<std::string>>()) {
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos)
      fail_usage("--set", quoted(word) + " (expected PARAMETER=VALUE)");
    std::string name = word.substr(0, equals);
    if (std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == name; }))
      fail_usage("--set", quoted(name) + " is set twice");
    pairs.emplace_back(std::move(name), word.substr(equals + 1));
  }
  return pairs;
}

// Every parameter of the question, null where it is not set.
std::vector<Parameter> parameters_of(const NamedQuery& query,
                                     const std::vector<std::pair<std::string, std::string>>& set) {
  std::vector<Parameter> parameters;
  for (const QueryParameter& one : query.parameters) parameters.push_back({std::string(one.name), {}});
  for (const auto& [name, text] : set) {
    const auto known =
        std::find_if(query.parameters.begin(), query.parameters.end(),
                     [&, &name = name](const QueryParameter& one) { return one.name == name; });
    if (known == query.parameters.end()) {
      std::string names;
      for (const QueryParameter& one : query.parameters)
        names.append(names.empty() ? "" : ", ").append(one.name);
      fail_usage("--set", fmt::format("the question {} has no parameter {} (it has {})", query.name,
                                      quoted(name), names.empty() ? "none" : names));
    }
    parameters[static_cast<std::size_t>(known - query.parameters.begin())].value =
        value_of(name, text, known->type);
  }
  return parameters;
}

}  // namespace

int run_query(const CommandLine& line) {
  CommonOptions common;
  const auto values = parse_command(line, query_spec(), common);
  if (!values) return 0;
  if (values->count("name") && values->count("sql")) fail_usage("query", "give a NAME or --sql, not both");
  const auto set = settings(*values);
  Table table;
  if (values->count("sql")) {
    std::vector<Parameter> parameters;
    for (const auto& [name, text] : set) parameters.push_back({name, value_of(name, text, "")});
    bring_up_to_date(common);
    table = query_database(common.db, (*values)["sql"].as<std::string>(), parameters);
  } else if (values->count("name")) {
    const std::string name = (*values)["name"].as<std::string>();
    const NamedQuery* query = find_query(name);
    if (!query) {
      std::string known;
      for (const NamedQuery& one : named_queries()) known.append(known.empty() ? "" : ", ").append(one.name);
      fail_usage("query", "no question " + quoted(name) + " (the questions are " + known + ")");
    }
    const std::vector<Parameter> parameters = parameters_of(*query, set);
    bring_up_to_date(common);
    table = query_database(common.db, query->sql, parameters);
    table.title = query->question;
  } else {
    if (!set.empty()) fail_usage("--set", "only with a NAME or --sql");
    table = questions();
  }
  emit(common, write(table, common.format, output_width(common)));
  return 0;
}

}  // namespace quantmap
