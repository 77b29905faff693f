#include "app/capture_input.hpp"
#include "app/outlier_run.hpp"
#include "core/error.hpp"

namespace quantmap {
namespace {

namespace po = boost::program_options;

CommandSpec outliers_spec() {
  CommandSpec spec;
  spec.name = "outliers";
  spec.usage = "(MODEL (--text F | --token-ids F) | CAPTURE.h5) [--schemes S…] [options]";
  spec.does =
      "Massive activations (layer, token, channel, size, onset), how heavy-tailed every site is, and, for "
      "the\n"
      "formats of --schemes, what share of their error the massive values and the first token carry.";
  po::options_description options("Options of outliers");
  add_input_options(options);
  add_scheme_options(
      options, "whose activation and cache formats to judge: short names, w=…,a=…,kv=…, or @recipe.json");
  spec.options.add(options);
  spec.positionals = {"model"};
  spec.examples =
      "  quantmap outliers datasets/demo --text datasets/demo/text.txt --ctx 512 --windows 8\n"
      "  quantmap outliers model/ --text f.txt --windows 4 --schemes a=int8:tensor a=fp8_e4m3:tensor NVFP4\n";
  return spec;
}

}  // namespace

int run_outliers(const CommandLine& line) {
  OutlierRequest request;
  const auto values = parse_command(line, outliers_spec(), request.common);
  if (!values) return 0;
  request.command_line = line.text;
  request.input = input_request("outliers", *values);
  if (Capture::is_hdf5(request.input.model))
    refuse_text_options(*values);
  else if (request.input.text.empty() && request.input.token_ids.empty())
    fail_usage("outliers", "give one of --text and --token-ids");
  request.schemes = parse_schemes(scheme_words(*values));
  const OutlierRun result = run_outlier_tables(request);
  emit(request.common,
       write_outliers(result.run, result.rows, request.common.format, output_width(request.common)));
  return 0;
}

}  // namespace quantmap
