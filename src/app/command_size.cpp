#include <fmt/format.h>

#include <utility>

#include "app/model_source.hpp"
#include "app/options.hpp"
#include "app/size_report.hpp"
#include "checkpoint/config_limits.hpp"
#include "core/error.hpp"
#include "core/size.hpp"
#include "map/inspection.hpp"
#include "map/map_from_contents.hpp"
#include "map/name_of_choices.hpp"
#include "scheme/text.hpp"

namespace quantmap {
namespace {

namespace po = boost::program_options;

constexpr std::int64_t kMostRequests = 1'000'000'000;

CommandSpec size_spec() {
  CommandSpec spec;
  spec.name = "size";
  spec.usage =
      "MODEL|config.json [--scheme S…] [--context N] [--requests N] [--gpu NAME | --bandwidth B "
      "--memory-size M "
      "--tflops F]";
  spec.does =
      "Memory map and roofline from the configuration alone: weights by part, KV cache, tokens that fit, "
      "bounds on "
      "speed.\nWithout --scheme: BF16, then the checkpoint's own scheme if it has one. No weights are read, "
      "no "
      "database is written.";
  po::options_description options("Options of size");
  options.add_options()("model", po::value<std::string>(), "directory, .gguf file or config.json");
  add_scheme_options(options, "schemes to map");
  options.add_options()                                                                              //
      ("context", po::value<std::int64_t>(), "tokens of each request (8192, or the model's limit)")  //
      ("requests", po::value<std::int64_t>()->default_value(1), "requests at once")                  //
      ("gpu", po::value<std::string>(), fmt::format("a GPU by name: {}", machine_names()).c_str())   //
      ("bandwidth", po::value<double>(), "memory bandwidth in GB/s (10^9), instead of --gpu")        //
      ("memory-size", po::value<std::string>(), "memory: 80G (binary), instead of --gpu")            //
      ("tflops", po::value<double>(), "dense rate for every format, in TFLOPS, instead of --gpu")    //
      ("engine", po::value<std::string>()->default_value("vLLM"),
       "whose kernels: vLLM, TensorRT-LLM, SGLang, llama.cpp");
  spec.options.add(options);
  spec.positionals = {"model"};
  spec.examples =
      "  quantmap size Qwen3-8B/config.json --scheme NVFP4 W4A16+KVFP8 --gpu GB10 --context 8000\n"
      "  quantmap size MODEL --requests 32 --bandwidth 3350 --memory-size 80G --tflops 989 --format json\n";
  return spec;
}

Machine machine_of(const po::variables_map& values) {
  Machine machine;
  if (values.count("gpu")) {
    const std::string name = values["gpu"].as<std::string>();
    for (const char* other : {"bandwidth", "memory-size", "tflops"})
      if (values.count(other)) fail_usage("--gpu", fmt::format("not together with --{}", other));
    const Machine* found = find_machine(name);
    if (!found) fail_usage("--gpu", fmt::format("no GPU {} (known: {})", quoted(name), machine_names()));
    return *found;
  }
  machine.name = "the machine given";
  const auto positive = [&](const char* option) {
    const double value = values[option].as<double>();
    if (!(value > 0) || value > 1e9) fail_usage(fmt::format("--{}", option), "above 0, at most 1e9");
    return value;
  };
  if (values.count("bandwidth")) machine.bandwidth = positive("bandwidth") * 1e9;
  if (values.count("memory-size"))
    machine.memory =
        static_cast<double>(parse_size(values["memory-size"].as<std::string>(), "--memory-size"));
  if (values.count("tflops")) machine.rates.fill(positive("tflops") * 1e12);
  machine.source = "figures of the command line";
  return machine;
}

std::string engine_of(const po::variables_map& values) {
  const std::string given = values["engine"].as<std::string>();
  std::string known;
  for (const std::string& engine : engine_names()) {
    if (same_ignoring_case(engine, given)) return engine;
    known.append(known.empty() ? "" : ", ").append(engine);
  }
  fail_usage("--engine", fmt::format("no engine {} (known: {})", quoted(given), known));
}

std::int64_t whole_number(const po::variables_map& values, const char* option, std::int64_t most) {
  const std::int64_t value = values[option].as<std::int64_t>();
  if (value < 1 || value > most)
    fail_usage(fmt::format("--{}", option), fmt::format("1 to {}, not {}", most, value));
  return value;
}

// The checkpoint's own row, by its files where they are there, else by what its configuration says.
void add_own_row(const ModelSource& source, SizeReport& report) {
  const QuantConfig& config = source.quantization;
  if (!config.says_anything()) {
    if (!source.contents) return;
    WeightBytes stored = weight_bytes_of_files(*source.contents);
    if (stored.quantized_values == 0) return;
    const std::string name = inspect(source.config, config, &*source.contents, nullptr).name;
    report.rows.push_back(stored_size_row(*source.map, name, std::move(stored), report.request));
    return;
  }
  if (!config.known) {
    report.notes.push_back("the checkpoint's own scheme has no row: its quant_method is not known");
    return;
  }
  if (const std::string format = uncounted_format(config); !format.empty()) {
    report.notes.push_back(fmt::format("the checkpoint's own scheme ({}) has no row: {} is not counted",
                                       name_of(config), format));
    return;
  }
  report.rows.push_back(own_size_row(*source.map, config, report.request));
}

}  // namespace

int run_size(const CommandLine& line) {
  CommonOptions common;
  const auto values = parse_command(line, size_spec(), common);
  if (!values) return 0;
  if (!values->count("model")) fail_usage("size", "MODEL is missing (see quantmap size --help)");
  const std::string path = (*values)["model"].as<std::string>();
  SizeReport report;
  std::vector<Scheme> schemes;
  schemes = parse_every_scheme(scheme_words(*values));
  if (values->count("gpu") || values->count("bandwidth") || values->count("memory-size") ||
      values->count("tflops"))
    report.request.machine = machine_of(*values);
  report.request.engine = engine_of(*values);
  report.request.requests = whole_number(*values, "requests", kMostRequests);

  const ModelSource source = open_model_source(path, false);
  if (!source.map) throw Error(ErrorKind::input, source.why_no_map);
  const ModelMap& map = *source.map;
  report.request.context =
      values->count("context") ? whole_number(*values, "context", kMaxPositions) : default_context(map);
  report.model = path;
  report.model_type = map.model_type;
  report.notes = map.notes;
  if (map.max_position > 0 && report.request.context > map.max_position)
    report.notes.push_back(fmt::format("the model was made for {} positions; {} are asked for",
                                       map.max_position, report.request.context));
  for (const std::string& warning : source.warnings) report.notes.push_back("warning: " + warning);
  for (const std::string& warning : source.quantization.warnings)
    report.notes.push_back("warning: " + warning);
  if (schemes.empty()) {
    report.rows.push_back(size_row(map, Scheme::parse("BF16"), report.request));
    add_own_row(source, report);
  }
  for (const Scheme& scheme : schemes) report.rows.push_back(size_row(map, scheme, report.request));
  emit(common, write_sizes(report, map, common.format, output_width(common)));
  return 0;
}

}  // namespace quantmap
