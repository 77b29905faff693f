#include <charconv>

#include "app/options.hpp"
#include "app/outdated.hpp"
#include "app/run_diff.hpp"
#include "core/error.hpp"

namespace quantmap {
namespace {

namespace po = boost::program_options;

CommandSpec diff_spec() {
  CommandSpec spec;
  spec.name = "diff";
  spec.usage = "RUN RUN [--db FILE]";
  spec.does =
      "Two runs of the results database side by side: what differs in how they were made, then KL, "
      "perplexity,\n"
      "task scores and layer errors of every scheme that both have, the second less the first. Windows are\n"
      "paired where both runs scored the same tokens.";
  po::options_description options("Options of diff");
  options.add_options()                                                      //
      ("first", po::value<std::string>(), "number of a run (or its place)")  //
      ("second", po::value<std::string>(), "number of the run to set against it");
  spec.options.add(options);
  spec.positionals = {"first", "second"};
  spec.examples = "  quantmap diff 3 5\n  quantmap diff 3 5 --format md\n";
  return spec;
}

std::int64_t run_number(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1)
    fail_usage("diff", quoted(text) + " is no number of a run");
  return number;
}

}  // namespace

int run_diff(const CommandLine& line) {
  CommonOptions common;
  const auto values = parse_command(line, diff_spec(), common);
  if (!values) return 0;
  if (!values->count("first") || !values->count("second"))
    fail_usage("diff", "give the numbers of two runs (query runs lists them)");
  const std::int64_t first = run_number((*values)["first"].as<std::string>());
  const std::int64_t second = run_number((*values)["second"].as<std::string>());
  if (first == second) fail_usage("diff", "give two different runs");
  bring_up_to_date(common);
  const Database database = Database::open_read_only(common.db);
  const RunDiff diff = diff_runs(database, common.db, first, second, static_cast<std::uint64_t>(common.seed));
  emit(common, write_diff(diff, common.format, output_width(common)));
  return 0;
}

}  // namespace quantmap
