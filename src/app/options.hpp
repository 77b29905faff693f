// Options shared by commands, on Boost.Program_options.
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/command.hpp"
#include "reports/writers.hpp"

namespace quantmap {

struct CommonOptions {
  std::string db = "quantmap.db";
  std::string device = "auto";
  int threads = 0;
  std::optional<std::int64_t> memory;
  OutputFormat format = OutputFormat::table;
  bool html = false;  // a page instead (CommandSpec::html)
  std::string output;
  std::int64_t seed = 0;
  bool quiet = false;
};

// Parses a command's arguments. `options`: the command's own, without the common ones; `positionals`: their
// option names in order, the last takes any number if `many`. Prints help and returns nullopt for --help.
// Throws Error (usage) for anything that does not fit.
struct CommandSpec {
  std::string name, usage, does, examples;
  boost::program_options::options_description options;
  std::vector<std::string> positionals;
  bool html = false;  // --format html too, and by default
};
std::optional<boost::program_options::variables_map> parse_command(const CommandLine& line,
                                                                   const CommandSpec& spec,
                                                                   CommonOptions& common);

// Options --schemes and --scheme, which are one: `what` they name; and what was given for both, in order.
void add_scheme_options(boost::program_options::options_description& options, const char* what);
std::vector<std::string> scheme_words(const boost::program_options::variables_map& values);

// A message to stderr; one that cannot be written is no reason to fail.
void tell(const std::string& message);
// Writes to common.output, or to stdout.
void emit(const CommonOptions& common, const std::string& text);
// Width for tables: the terminal's, wide where the output goes to a file.
int output_width(const CommonOptions& common);

}  // namespace quantmap
