// The commands of the program: a table of rows, each a function from arguments to an exit status. Only the
// command line is a public contract (product.md, Commands).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quantmap {

struct CommandLine {
  std::string text;                    // as typed, for the run's record
  std::vector<std::string> arguments;  // after the command's name
};

struct Command {
  std::string_view name;
  std::string_view usage;  // arguments in one line
  std::string_view does;
  int (*run)(const CommandLine&);
};
std::span<const Command> commands();

int run_eval(const CommandLine& line);
int run_error(const CommandLine& line);
int run_outliers(const CommandLine& line);
int run_capture(const CommandLine& line);
int run_diff(const CommandLine& line);
int run_query(const CommandLine& line);
int run_report(const CommandLine& line);
int run_formats(const CommandLine& line);
int run_bench(const CommandLine& line);
int run_demo(const CommandLine& line);
int run_size(const CommandLine& line);
int run_inspect(const CommandLine& line);
int run_first_look(const CommandLine& line);  // `quantmap MODEL`: `arguments` begins with MODEL

}  // namespace quantmap
