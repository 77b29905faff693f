#include "app/options.hpp"

namespace quantmap {

int run_bench(const CommandLine& line) {
  CommandSpec spec;
  spec.name = "bench";
  CommonOptions common;
  if (!parse_command(line, spec, common)) return 0;
  return 0;
}

}  // namespace quantmap
