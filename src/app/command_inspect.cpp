#include <fmt/format.h>

#include "app/inspect_report.hpp"
#include "app/model_source.hpp"
#include "app/options.hpp"
#include "core/error.hpp"
#include "map/inspection.hpp"

namespace quantmap {
namespace {

namespace po = boost::program_options;

CommandSpec inspect_spec() {
  CommandSpec spec;
  spec.name = "inspect";
  spec.usage = "MODEL|FILE.json [--tensors]";
  spec.does =
      "The three choices hidden in a checkpoint: formats of weights, activations and KV cache, what stays in "
      "high "
      "precision,\nand every contradiction between what its configuration says and what its files hold. "
      "Headers are "
      "read, never tensors.\nFILE.json: config.json, hf_quant_config.json, quantize_config.json or a bare "
      "quantization_config, told apart by their keys.";
  po::options_description options("Options of inspect");
  options.add_options()                                                      //
      ("model", po::value<std::string>(), "directory, .gguf or .json file")  //
      ("tensors", "list every tensor in the table too (JSON always does)");
  spec.options.add(options);
  spec.positionals = {"model"};
  spec.examples =
      "  quantmap inspect Qwen3-8B-NVFP4/\n"
      "  quantmap inspect hf_quant_config.json --format json\n";
  return spec;
}

}  // namespace

int run_inspect(const CommandLine& line) {
  CommonOptions common;
  const auto values = parse_command(line, inspect_spec(), common);
  if (!values) return 0;
  if (!values->count("model")) fail_usage("inspect", "MODEL is missing (see quantmap inspect --help)");
  const ModelSource source = open_model_source((*values)["model"].as<std::string>(), true);
  Inspection inspection =
      inspect(source.config, source.quantization, source.contents ? &*source.contents : nullptr,
              source.map ? &*source.map : nullptr);
  inspection.warnings.insert(inspection.warnings.end(), source.warnings.begin(), source.warnings.end());
  emit(common, write_inspection(source, inspection, values->count("tensors") > 0, common.format,
                                output_width(common)));
  return 0;
}

}  // namespace quantmap
