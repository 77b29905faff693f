// `quantmap MODEL`: the choices, the size, the contradictions, schemes worth trying, and the next command to
// type.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "app/inspect_report.hpp"
#include "app/model_source.hpp"
#include "app/options.hpp"
#include "app/size_report.hpp"
#include "checkpoint/config.hpp"
#include "core/error.hpp"
#include "map/inspection.hpp"

namespace quantmap {
namespace {

struct Suggestion {
  const char* scheme;
  const char* why;
};
// Weights alone, weights and activations, and the cache: one of each kind that servers run.
constexpr std::array<Suggestion, 5> kSuggestions{{
    {"FP8_DYNAMIC", "half the bytes; native from Ada on"},
    {"W8A8", "half the bytes; INT8 products, Turing to Hopper"},
    {"W4A16", "a quarter of the Linears; faster decoding anywhere"},
    {"NVFP4", "as W4A16, and FP4 products on Blackwell"},
    {"BF16+KVFP8", "twice the cached tokens, weights untouched"},
}};

// Whether `eval` would take this model: its family, and nothing quantized in packings that it does not read.
bool eval_takes(const ModelSource& source) {
  if (!source.contents) return false;
  if (source.contents->gguf) return !source.map->caches.empty();
  try {
    parse_config(source.config, source.path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string program_name(const CommandLine& line) { return line.text.substr(0, line.text.find(' ')); }

}  // namespace

int run_first_look(const CommandLine& line) {
  CommandSpec spec;
  spec.name = "MODEL";
  spec.does = "A first look at a model.";
  namespace po = boost::program_options;
  spec.options.add_options()("model", po::value<std::string>(), "directory, .gguf or .json file");
  spec.positionals = {"model"};
  CommonOptions common;
  const auto values = parse_command(line, spec, common);
  if (!values) return 0;
  const std::string path = (*values)["model"].as<std::string>();
  const ModelSource source = open_model_source(path, true);
  Inspection inspection =
      inspect(source.config, source.quantization, source.contents ? &*source.contents : nullptr,
              source.map ? &*source.map : nullptr);
  inspection.warnings.insert(inspection.warnings.end(), source.warnings.begin(), source.warnings.end());
  if (common.format == OutputFormat::json) {
    emit(common, write_inspection(source, inspection, false, common.format, output_width(common)));
    return 0;
  }

  Table choices = choices_table(
      fmt::format("{}: {}{}", path, inspection.name,
                  inspection.model_type.empty() ? "" : fmt::format(" ({})", inspection.model_type)),
      inspection);
  if (inspection.parameters)
    choices.notes.push_back(
        fmt::format("{} parameters{}", *inspection.parameters,
                    inspection.bpw_model ? fmt::format(", {:.4g} bits each", *inspection.bpw_model) : ""));
  for (const std::string& warning : inspection.warnings) choices.notes.push_back("warning: " + warning);
  std::string text = write(choices, common.format, output_width(common)) + "\n";

  if (source.map) {
    SizeRequest request;
    request.context = default_context(*source.map);
    Table sizes;
    sizes.title = "What schemes would take";
    sizes.columns = {
        {"scheme"}, {"weights"}, {"KV/token"}, {fmt::format("KV of 32 × {}", request.context)}, {"why"}};
    const bool kv = !source.map->caches.empty();
    const auto add = [&](const SizeRow& row, const char* why) {
      sizes.rows.push_back({row.scheme, size_text(static_cast<double>(row.weights.bytes())),
                            kv ? Value(size_text(row.kv.per_token)) : Value(),
                            kv ? Value(size_text(row.kv.per_request * 32)) : Value(), std::string(why)});
    };
    add(size_row(*source.map, Scheme::parse("BF16"), request), "the reference");
    const QuantConfig& config = source.quantization;
    if (config.known && uncounted_format(config).empty() && !source.map->caches.empty())
      add(own_size_row(*source.map, config, request), "this checkpoint");
    else if (source.contents && inspection.weights)
      sizes.rows.push_back({inspection.name, size_text(static_cast<double>(source.contents->bytes)), Value(),
                            Value(), std::string("this checkpoint, as stored")});
    for (const Suggestion& one : kSuggestions)
      add(size_row(*source.map, Scheme::parse(one.scheme), request), one.why);
    text += write(sizes, common.format, output_width(common)) + "\n";
  }

  const std::string program = program_name(line);
  if (eval_takes(source))
    text +=
        fmt::format("next: {} eval {} --text YOUR.txt --schemes FP8_DYNAMIC W8A8 W4A16 NVFP4 BF16+KVFP8\n",
                    program, path);
  else if (source.map)
    text += fmt::format("next: {} size {} --gpu H100 --requests 32\n", program, path);
  else
    text += fmt::format("next: {} inspect {} --format json\n", program, path);
  emit(common, text);
  return 0;
}

}  // namespace quantmap
