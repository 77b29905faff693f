#include <fmt/format.h>

#include <filesystem>

#include "app/error_run.hpp"
#include "app/evaluate.hpp"
#include "app/version.hpp"
#include "core/mapped_file.hpp"
#include "reports/answer.hpp"
#include "reports/errors.hpp"
#include "reports/evaluation.hpp"
#include "reports/report_page.hpp"

namespace quantmap {
namespace {

// The schemes that a newcomer should see side by side: weights alone, weights and activations, the cache.
const std::vector<std::string> kDemoSchemes = {"W8A16",       "W4A16",      "W4A16_G32",  "W8A8",  "W4A8",
                                               "FP8_DYNAMIC", "MXFP8",      "MXFP4",      "NVFP4", "NVFP4A16",
                                               "NF4",         "BF16+KVFP8", "W4A16+KVFP8"};
// Where it hurts, of one of each kind.
const std::vector<std::string> kDemoErrorSchemes = {"W8A8", "W4A16", "NVFP4+KVFP8"};
constexpr std::int64_t kDemoCtx = 512, kDemoErrorWindows = 4;
constexpr const char* kDemoDb = "quantmap-demo.db";
constexpr const char* kDemoMarkdown = "quantmap-demo.md";
constexpr const char* kDemoPage = "quantmap-demo.html";

// The errors of some of the schemes on a few windows, for people.
std::string demo_errors(const EvaluationRequest& evaluation) {
  ErrorRequest request;
  request.command_line = evaluation.command_line;
  request.input = evaluation.input;
  request.input.windows = kDemoErrorWindows;
  request.schemes = parse_schemes(kDemoErrorSchemes);
  request.selection.scopes[static_cast<std::size_t>(ErrorScope::local)] = true;
  for (const TensorKind kind :
       {TensorKind::weight, TensorKind::activation, TensorKind::output, TensorKind::key, TensorKind::value})
    request.selection.kinds[static_cast<std::size_t>(kind)] = true;
  request.common = evaluation.common;
  const ErrorResult result = run_error_tables(request);
  std::string text = "\n";
  text += write(error_summary(result.run, result.schemes, result.errors), evaluation.common.format,
                output_width(evaluation.common));
  return text;
}

}  // namespace

int run_demo(const CommandLine& line) {
  CommandSpec spec;
  spec.name = "demo";
  spec.does =
      "eval, error and report on the small model and text that come with quantmap: 13 schemes, windows of\n"
      "512 tokens.";
  EvaluationRequest request;
  const auto values = parse_command(line, spec, request.common);
  if (!values) return 0;
  if ((*values)["db"].defaulted()) request.common.db = kDemoDb;
  const std::filesystem::path model =
      std::filesystem::exists("datasets/demo/config.json") ? "datasets/demo" : kDemoDir;
  request.command = "demo";
  request.command_line = line.text;
  request.input.model = model.string();
  request.input.text = (model / "text.txt").string();
  request.schemes = parse_schemes(kDemoSchemes);
  request.input.protocol.ctx = kDemoCtx;
  const EvaluationResult result = evaluate(request);
  const OutputFormat format = request.common.format;
  std::string text = write_evaluation(result.rows, format, output_width(request.common));
  // Programs get one document, that of eval.
  if (format == OutputFormat::table || format == OutputFormat::md) text += demo_errors(request);
  emit(request.common, text);
  write_file_atomically(kDemoMarkdown, write_evaluation(result.rows, OutputFormat::md, 200));
  write_file_atomically(kDemoPage, report_html(read_report(request.common.db, {}, kDefaultMaxKl)));
  if (!request.common.quiet)
    tell(fmt::format(
        "\nresults: {} (run {}), as a page: {}, table in Markdown: {}\nnext: {} query layers --db {}\n",
        request.common.db, result.rows.run.id, kDemoPage, kDemoMarkdown,
        line.text.substr(0, line.text.find(' ')), request.common.db));
  return 0;
}

}  // namespace quantmap
