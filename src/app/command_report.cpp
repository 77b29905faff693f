#include <unistd.h>

#include <cmath>

#include "app/options.hpp"
#include "core/error.hpp"
#include "reports/answer.hpp"
#include "reports/report_page.hpp"

namespace quantmap {
namespace {

namespace po = boost::program_options;

CommandSpec report_spec() {
  CommandSpec spec;
  spec.name = "report";
  spec.usage = "[--run N…] [--db FILE] --output REPORT.html";
  spec.does =
      "What runs have found, as one self-contained HTML page: the answer, the schemes, where it hurts, "
      "tasks,\n"
      "provenance. Without --run: the newest evaluation, and the newest errors, outliers and tasks of its "
      "model.";
  spec.html = true;
  po::options_description options("Options of report");
  options.add_options()                                                                              //
      ("run", po::value<std::vector<std::int64_t>>()->multitoken()->composing(), "runs, by number")  //
      ("max-kl", po::value<double>()->default_value(kDefaultMaxKl, "0.01"),
       "the KL, in nats per token, that the answer holds to be bearable")  //
      ("out", po::value<std::string>(), "the same as --output");
  spec.options.add(options);
  spec.examples =
      "  quantmap report --output report.html\n"
      "  quantmap report --run 3 4 --format md --output report.md\n";
  return spec;
}

}  // namespace

int run_report(const CommandLine& line) {
  CommonOptions common;
  const auto values = parse_command(line, report_spec(), common);
  if (!values) return 0;
  const double max_kl = (*values)["max-kl"].as<double>();
  if (!(max_kl > 0) || !std::isfinite(max_kl)) fail_usage("--max-kl", "more than 0 nats");
  if (common.html && common.output.empty() && ::isatty(STDOUT_FILENO) != 0)
    fail_usage("report", "a page is no text for a terminal: give --output FILE.html, or --format table");
  std::vector<std::int64_t> runs;
  if (values->count("run")) runs = (*values)["run"].as<std::vector<std::int64_t>>();
  const ReportData data = read_report(common.db, runs, max_kl);
  std::string text;
  if (common.html)
    text = report_html(data);
  else if (common.format == OutputFormat::json)
    text = report_json(data) + "\n";
  else
    text = report_text(data, common.format, output_width(common));
  emit(common, text);
  if (!common.quiet && !common.output.empty()) tell("report: " + common.output + "\n");
  return 0;
}

}  // namespace quantmap
