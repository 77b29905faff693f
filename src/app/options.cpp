#include "app/options.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>
#include <sstream>

#include "core/error.hpp"
#include "core/mapped_file.hpp"
#include "core/parallel.hpp"
#include "core/size.hpp"

namespace quantmap {
namespace {

namespace po = boost::program_options;

po::options_description common_description(bool html) {
  po::options_description common("Common options");
  common.add_options()                                                                       //
      ("db", po::value<std::string>()->default_value("quantmap.db"), "results database")     //
      ("device", po::value<std::string>()->default_value("auto"), "auto or cpu")             //
      ("threads", po::value<int>()->default_value(0), "worker threads; 0: one a processor")  //
      ("memory", po::value<std::string>(), "bound on what a sweep allocates: 512M, 2G")      //
      ("format", po::value<std::string>()->default_value(html ? "html" : "table"),
       html ? "html, table, json, csv or md" : "table, json, csv or md")                //
      ("output", po::value<std::string>(), "write there instead of to the terminal")    //
      ("seed", po::value<std::int64_t>()->default_value(0), "seed, kept with the run")  //
      ("quiet", "no progress, no messages")                                             //
      ("help", "this text");
  return common;
}

// What follows `--` are positional arguments, also behind a list option, which would take them otherwise.
void add_positionals(std::span<const std::string> words, const CommandSpec& spec,
                     po::parsed_options& parsed) {
  std::size_t next = 0;
  for (const std::string& word : words) {
    const auto given = [&](const po::option& option) { return option.string_key == spec.positionals[next]; };
    while (next < spec.positionals.size() && std::any_of(parsed.options.begin(), parsed.options.end(), given))
      ++next;
    if (next == spec.positionals.size()) throw po::too_many_positional_options_error();
    parsed.options.emplace_back(spec.positionals[next], std::vector{word});
  }
}

// An empty value is a variable of a script that was never set; no option means anything by it.
void refuse_empty_values(const po::parsed_options& parsed) {
  for (const po::option& option : parsed.options)
    if (option.position_key < 0 && option.value == std::vector{std::string()})
      fail_usage("--" + option.string_key, "its value is empty");
}

// Known before anything is measured, not after.
void require_writable(const std::string& output) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(output, ignored);
  if (fs::is_directory(status)) fail("cannot write file", output, std::strerror(EISDIR));
  const fs::path folder = fs::absolute(output).parent_path();
  const bool beside = !fs::exists(status) || fs::is_regular_file(status);
  if (::access(beside ? folder.c_str() : output.c_str(), W_OK) != 0)
    fail("cannot write file", output, std::strerror(errno));
}

}  // namespace

void add_scheme_options(po::options_description& options, const char* what) {
  using Words = std::vector<std::string>;
  options.add_options()                                                 //
      ("schemes", po::value<Words>()->multitoken()->composing(), what)  //
      ("scheme", po::value<Words>()->multitoken()->composing(), "the same");
}

std::vector<std::string> scheme_words(const po::variables_map& values) {
  std::vector<std::string> words;
  for (const char* name : {"schemes", "scheme"})
    if (values.count(name)) {
      const auto& more = values[name].as<std::vector<std::string>>();
      words.insert(words.end(), more.begin(), more.end());
    }
  return words;
}

void tell(const std::string& message) { std::fputs(message.c_str(), stderr); }

std::optional<po::variables_map> parse_command(const CommandLine& line, const CommandSpec& spec,
                                               CommonOptions& common) {
  po::options_description shown;
  shown.add(spec.options).add(common_description(spec.html));
  po::positional_options_description positional;
  for (const std::string& name : spec.positionals) positional.add(name.c_str(), 1);
  po::variables_map values;
  try {
    const auto dashes = std::find(line.arguments.begin(), line.arguments.end(), "--");
    po::command_line_parser parser(std::vector<std::string>(line.arguments.begin(), dashes));
    namespace style = po::command_line_style;
    // No guessing of abbreviated options: a typing error must not become another option.
    po::parsed_options parsed = parser.options(shown)
                                    .positional(positional)
                                    .style(style::unix_style & ~style::allow_guessing & ~style::allow_short)
                                    .run();
    if (dashes != line.arguments.end()) add_positionals({dashes + 1, line.arguments.end()}, spec, parsed);
    refuse_empty_values(parsed);
    po::store(parsed, values);
    po::notify(values);
  } catch (const po::error& error) {
    std::string text = error.what();
    for (char& c : text)
      if (c == '\n') c = ' ';
    fail_usage(spec.name, text + " (see quantmap " + spec.name + " --help)");
  }
  if (values.count("help")) {
    std::ostringstream text;
    text << "quantmap " << spec.name << " " << spec.usage << "\n" << spec.does << "\n\n" << shown;
    if (!spec.examples.empty()) text << "\nExamples:\n" << spec.examples;
    emit({}, text.str());
    return std::nullopt;
  }
  common.db = values["db"].as<std::string>();
  common.device = values["device"].as<std::string>();
  if (common.device == "cuda" || common.device == "emulated")
    fail_usage("--device", common.device + " is not built yet (auto or cpu)");
  if (common.device != "auto" && common.device != "cpu")
    fail_usage("--device", "unknown device " + quoted(common.device) + " (auto or cpu)");
  common.threads = values["threads"].as<int>();
  if (common.threads < 0 || common.threads > 1024)
    fail_usage("--threads", fmt::format("0 to 1024, not {}", common.threads));
  set_thread_count(common.threads);
  if (values.count("memory")) common.memory = parse_size(values["memory"].as<std::string>(), "--memory");
  const std::string format = values["format"].as<std::string>();
  common.html = spec.html && format == "html";
  if (!common.html) common.format = parse_output_format(format == "markdown" ? "md" : format);
  if (spec.html && values.count("out")) common.output = values["out"].as<std::string>();
  if (values.count("output")) common.output = values["output"].as<std::string>();
  if (!common.output.empty()) require_writable(common.output);
  common.seed = values["seed"].as<std::int64_t>();
  if (common.seed < 0) fail_usage("--seed", fmt::format("0 or more, not {}", common.seed));
  common.quiet = values.count("quiet") > 0;
  return values;
}

void emit(const CommonOptions& common, const std::string& text) {
  if (!common.output.empty()) {
    write_file_atomically(common.output, text);
    return;
  }
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    fail("cannot write", "standard output", "it was closed or its device is full");
}

int output_width(const CommonOptions& common) {
  constexpr int kFileWidth = 200;
  return common.output.empty() ? terminal_width(kFileWidth) : kFileWidth;
}

}  // namespace quantmap
