#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "app/command.hpp"
#include "app/options.hpp"
#include "app/version.hpp"
#include "core/error.hpp"

namespace quantmap {
namespace {

constexpr std::array<Command, 12> kCommands = {{
    {"inspect", "MODEL|FILE.json", "the three choices that a checkpoint hides, and its contradictions",
     run_inspect},
    {"size", "MODEL|config.json", "memory map and roofline of any scheme, no weights needed", run_size},
    {"eval", "MODEL --text F --schemes S…", "perplexity and KL divergence of many schemes in one pass",
     run_eval},
    {"capture", "MODEL --text F --output F.h5", "weights, activations, keys and values to HDF5", run_capture},
    {"error", "MODEL [--text F] --schemes S…", "error of every layer's tensors: local, inherited, total",
     run_error},
    {"outliers", "MODEL --text F [--schemes S…]",
     "massive activations, heavy tails, their share of the error", run_outliers},
    {"query", "[NAME | --sql \"SELECT …\"]", "named questions or read-only SQL on the results database",
     run_query},
    {"diff", "RUN RUN", "two runs side by side, paired where the tokens are the same", run_diff},
    {"report", "--output R.html", "one self-contained page: the answer, where it hurts, provenance",
     run_report},
    {"formats", "", "the number formats: bits, block, scale, range, specification", run_formats},
    {"bench", "[MODEL]", "this machine's rates, and the forward pass as a share of them", run_bench},
    {"demo", "", "eval on the small model and text that come with quantmap", run_demo},
}};

std::string help() {
  std::string text =
      "quantmap: what quantizing a language model would save, where it would hurt, what it would cost.\n\n"
      "usage: quantmap COMMAND [options]\n\n";
  for (const Command& command : kCommands)
    text += fmt::format("  {:<8} {:<31} {}\n", command.name, command.usage, command.does);
  text +=
      "\nMODEL is a directory with config.json and safetensors, or a .gguf file.\n"
      "quantmap MODEL alone is a first look; quantmap COMMAND --help has all options and examples.\n"
      "First try:  quantmap demo\n";
  return text;
}

int run_command(int argc, char** argv) {
  if (argc < 2) {
    std::fputs(help().c_str(), stderr);
    return static_cast<int>(ErrorKind::usage);
  }
  const std::string_view name = argv[1];
  if (name == "--help" || name == "-h" || name == "help") {
    emit({}, help());
    return 0;
  }
  if (name == "--version") {
    emit({}, fmt::format("quantmap {} ({})\n", kVersion, kGitRevision));
    return 0;
  }
  for (const Command& command : kCommands) {
    if (command.name != name) continue;
    CommandLine line;
    for (int i = 0; i < argc; ++i) line.text.append(i ? " " : "").append(argv[i]);
    line.arguments.assign(argv + 2, argv + argc);
    return command.run(line);
  }
  // Not a command: a model, if there is one of that name.
  std::error_code ignored;
  if (!name.starts_with('-') && std::filesystem::exists(name, ignored)) {
    CommandLine line;
    for (int i = 0; i < argc; ++i) line.text.append(i ? " " : "").append(argv[i]);
    line.arguments.assign(argv + 1, argv + argc);
    return run_first_look(line);
  }
  std::string known;
  for (const Command& command : kCommands) known.append(known.empty() ? "" : ", ").append(command.name);
  fail_usage("unknown command " + quoted(name), "the commands are " + known);
}

// A standard stream that is closed would give its number to the next file opened, and messages would go
// there. What is opened in its place fails as a closed stream does.
void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) [[maybe_unused]]
      const int opened = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

// Ctrl-C where nothing needs to be brought to an end: what is stored is safe at any moment (evaluate.cpp has
// its own way during a sweep).
void interrupted(int) {
  constexpr std::string_view kLine = "quantmap: error: interrupted\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kLine.data(), kLine.size());
  ::_exit(static_cast<int>(ErrorKind::interrupted));
}

void set_signals() {
  for (const int signal : {SIGINT, SIGTERM})
    if (std::signal(signal, interrupted) == SIG_IGN)
      std::signal(signal, SIG_IGN);  // as nohup and `&` ask for
  std::signal(SIGXFSZ, SIG_IGN);     // a file that may not grow is an error to report
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace quantmap

int main(int argc, char** argv) {
  using quantmap::ErrorKind;
  quantmap::hold_standard_streams();
  quantmap::set_signals();
  const auto report = [](const std::string& line, ErrorKind kind) {
    quantmap::tell("quantmap: error: " + line + "\n");
    return static_cast<int>(kind);
  };
  try {
    return quantmap::run_command(argc, argv);
  } catch (const quantmap::Error& error) {
    return report(error.what(), error.kind());
  } catch (const std::bad_alloc&) {
    return report("out of memory", ErrorKind::failed);
  } catch (const std::exception& error) {
    return report(quantmap::quoted(error.what()), ErrorKind::failed);
  }
}
