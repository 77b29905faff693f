#include <fmt/format.h>

#include <algorithm>

#include "app/capture_input.hpp"
#include "app/error_run.hpp"
#include "capture/layout.hpp"
#include "core/error.hpp"
#include "reports/errors.hpp"
#include "sweep/errors.hpp"

namespace quantmap {
namespace {

namespace po = boost::program_options;
using Words = std::vector<std::string>;

CommandSpec error_spec() {
  CommandSpec spec;
  spec.name = "error";
  spec.usage = "(MODEL [--text F | --token-ids F] | CAPTURE.h5) --schemes S… [options]";
  spec.does =
      "What each scheme does to every tensor of every layer: weights, inputs and outputs of the Linears, "
      "keys,\n"
      "values and attention; by itself (local), by what reaches it (inherited), and both (total). Without a\n"
      "text only weights are measured; from a capture, the local errors of what it holds.";
  po::options_description options("Options of error");
  add_input_options(options);
  add_scheme_options(options, "short names (W4A16, NVFP4+KVFP8, …), w=…,a=…,kv=…, or @recipe.json");
  options.add_options()  //
      ("sites", po::value<Words>()->multitoken()->composing(),
       "only sites (`model.layers.3.mlp.down_proj output`) that a regular expression matches")  //
      ("scope", po::value<Words>()->multitoken()->composing(),
       "local, inherited, total (default: all; local alone runs the reference only)")  //
      ("kind", po::value<Words>()->multitoken()->composing(),
       "weight, activation, output, key, value, attention_weights, attention_output (default: all)");
  spec.options.add(options);
  spec.positionals = {"model"};
  spec.examples =
      "  quantmap error datasets/demo --schemes W4A16 NVFP4\n"
      "  quantmap error model/ --text f.txt --ctx 512 --windows 4 --schemes W4A16 W8A8+KVINT8\n"
      "  quantmap error model/ --text f.txt --schemes NVFP4 --scope local --kind output --sites down_proj\n"
      "  quantmap error capture.h5 --schemes W4A16 W8A8\n";
  return spec;
}

// Marks the names that were given, all where none was. Throws Error (usage) naming the known ones.
template <std::size_t N>
void choose(const po::variables_map& values, const char* option, const std::array<const char*, N>& names,
            std::array<bool, N>& chosen) {
  chosen.fill(!values.count(option));
  if (!values.count(option)) return;
  for (const std::string& word : values[option].as<Words>()) {
    const auto at = std::find(names.begin(), names.end(), word);
    if (at == names.end())
      fail_usage(fmt::format("--{} {}", option, quoted(word)),
                 fmt::format("it is one of {}", fmt::join(names, ", ")));
    chosen[static_cast<std::size_t>(at - names.begin())] = true;
  }
}

// Narrows the choice to `possible`; what was asked for by name and is not there is refused.
void narrow(const po::variables_map& values, const ErrorSelection& possible, const char* why,
            ErrorSelection& selection) {
  for (std::size_t s = 0; s < kScopeNames.size(); ++s) {
    if (selection.scopes[s] && !possible.scopes[s] && values.count("scope"))
      fail_usage(fmt::format("--scope {}", kScopeNames[s]), why);
    selection.scopes[s] = selection.scopes[s] && possible.scopes[s];
  }
  for (std::size_t k = 0; k < kKindNames.size(); ++k) {
    if (selection.kinds[k] && !possible.kinds[k] && values.count("kind"))
      fail_usage(fmt::format("--kind {}", kKindNames[k]), why);
    selection.kinds[k] = selection.kinds[k] && possible.kinds[k];
  }
}

void take_from_capture(const po::variables_map& values, ErrorRequest& request) {
  refuse_text_options(values);
  narrow(values, captured_kinds(), "it needs the model: a capture holds the reference's tensors only",
         request.selection);
}

void take_weights_only(const po::variables_map& values, ErrorSelection& selection) {
  ErrorSelection weights;
  weights.scopes[0] = true;
  weights.kinds[static_cast<std::size_t>(TensorKind::weight)] = true;
  narrow(values, weights, "it needs a --text or --token-ids; only local errors of weights do not", selection);
}

}  // namespace

int run_error(const CommandLine& line) {
  ErrorRequest request;
  const auto values = parse_command(line, error_spec(), request.common);
  if (!values) return 0;
  request.command_line = line.text;
  request.input = input_request("error", *values);
  request.schemes = parse_schemes(scheme_words(*values));
  if (request.schemes.empty())
    fail_usage("error", "no --schemes given (besides the reference BF16, which has no error)");
  choose(*values, "scope", kScopeNames, request.selection.scopes);
  choose(*values, "kind", kKindNames, request.selection.kinds);
  if (Capture::is_hdf5(request.input.model))
    take_from_capture(*values, request);
  else if (request.input.text.empty() && request.input.token_ids.empty())
    take_weights_only(*values, request.selection);
  if (values->count("sites")) {
    std::vector<ModulePattern> patterns;
    for (const std::string& word : (*values)["sites"].as<Words>()) {
      patterns.push_back(site_pattern(word));
      request.sites.push_back(word);
    }
    request.selection.site = [patterns](const std::string& site) {
      return std::any_of(patterns.begin(), patterns.end(),
                         [&](const ModulePattern& pattern) { return pattern.matches(site); });
    };
  }
  const ErrorResult result = run_error_tables(request);
  emit(request.common, write_errors(result.run, result.schemes, result.errors, request.common.format,
                                    output_width(request.common)));
  return 0;
}

}  // namespace quantmap
