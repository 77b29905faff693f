#include <fmt/format.h>

#include <atomic>
#include <filesystem>

#include "app/command.hpp"
#include "app/interrupt.hpp"
#include "app/text_input.hpp"
#include "app/version.hpp"
#include "capture/capture.hpp"
#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "core/progress.hpp"
#include "core/size.hpp"
#include "kernels/matmul/matmul.hpp"
#include "sweep/sweep.hpp"

namespace quantmap {
namespace {

namespace po = boost::program_options;
using Words = std::vector<std::string>;

constexpr int kWeightLevel = 1, kActivationLevel = 0;  // docs/capture.md has what they cost and save

CommandSpec capture_spec() {
  CommandSpec spec;
  spec.name = "capture";
  spec.usage = "MODEL (--text F | --token-ids F) --output F.h5 [options]";
  spec.does =
      "Writes the weights, and the activations, keys and values of the unquantized forward pass on a text, "
      "to an\n"
      "HDF5 file that h5py opens. An interrupted capture goes on with --resume.";
  po::options_description options("Options of capture");
  add_input_options(options);
  options.add_options()  //
      ("sites", po::value<Words>()->multitoken()->composing(),
       "only sites (`model.layers.3.mlp.down_proj input`) and tensors that a regular expression matches")  //
      ("layers", po::value<std::string>(), "only these layers: 0,3,5-7")                                   //
      ("every", po::value<std::int64_t>(), "of each window only every Nth token, from the first")          //
      ("tokens", po::value<std::int64_t>(), "of each window only N tokens, spread evenly")                 //
      ("no-weights", "no weights")                                                                         //
      ("weights-only", "nothing but weights; needs no text")                                               //
      ("store", po::value<std::string>()->default_value("f32"), "f32, bf16 or f16")                        //
      ("compress", po::value<int>(), "deflate level, 0 to 9 (default: 1 for weights, 0 for the rest)")     //
      ("resume", "go on with the unfinished file of the same inputs");
  spec.options.add(options);
  spec.positionals = {"model"};
  spec.examples =
      "  quantmap capture datasets/demo --text datasets/demo/text.txt --ctx 512 --windows 4 --output "
      "demo.h5\n"
      "  quantmap capture model/ --text f.txt --sites 'down_proj input' --layers 0-3 --output down.h5\n"
      "  quantmap capture model.gguf --weights-only --store bf16 --output weights.h5\n";
  return spec;
}

class CaptureCommand {
 public:
  CaptureCommand(const CommandLine& line, const po::variables_map& values, const CommonOptions& common)
      : values_(values),
        common_(common),
        request_(input_request("capture", values)),
        checkpoint_(Checkpoint::open(request_.model)) {
    job_.checkpoint = &checkpoint_;
    job_.path = common.output;
    job_.resume = values.count("resume") > 0;
    job_.memory = common.memory.value_or(default_memory());
    select();
    describe(line);
  }

  int run() {
    const InterruptGuard guard;
    job_.interrupted = [] { return interrupt_seen(); };
    std::optional<Progress> progress;
    std::atomic<std::int64_t> bytes{0};
    job_.announce = [&](const CapturePlan& plan) {
      announce(plan);
      ProgressOptions options;
      options.label = "capture";
      options.unit = "MiB";
      options.total = plan.file_bytes >> 20;
      options.quiet = common_.quiet;
      progress.emplace(options);
    };
    job_.progress = [&](std::int64_t more) {
      const std::int64_t before = bytes.fetch_add(more);
      const std::int64_t whole = ((before + more) >> 20) - (before >> 20);
      if (whole > 0) progress->advance(whole);
    };
    const CaptureReport report = run_capture(job_);
    progress.reset();
    conclude(report);
    return 0;
  }

 private:
  void say(const std::string& message) const {
    if (!common_.quiet) tell("quantmap: " + message + "\n");
  }

  std::optional<std::int64_t> number(const char* name) const {
    if (!values_.count(name)) return std::nullopt;
    return values_[name].as<std::int64_t>();
  }

  void select() {
    CaptureSelection selection;
    std::string told;  // what a resumed capture must repeat
    if (values_.count("sites"))
      for (const std::string& word : values_["sites"].as<Words>()) {
        selection.patterns.push_back(site_pattern(word));
        told += fmt::format("--sites {} ", word);
      }
    if (values_.count("layers")) {
      const auto layers = values_["layers"].as<std::string>();
      selection.layers = parse_layers(layers, checkpoint_.config().layers);
      told += fmt::format("--layers {} ", layers);
    }
    selection.weights = !values_.count("no-weights");
    selection.activations = !values_.count("weights-only");
    if (!selection.weights && !selection.activations)
      fail_usage("capture", "--no-weights and --weights-only leave nothing");
    if (!selection.weights) told += "--no-weights ";
    if (!selection.activations) told += "--weights-only ";
    job_.contents = capture_contents(checkpoint_, selection);
    if (job_.contents.sites.empty() && job_.contents.tensors.empty())
      fail_usage("capture",
                 "--sites and --layers leave nothing (a site is `model.layers.3.mlp.down_proj input`)");
    job_.contents.site_level = kActivationLevel;
    job_.contents.tensor_level = kWeightLevel;
    if (values_.count("compress")) {
      const int level = values_["compress"].as<int>();
      if (level < 0 || level > 9) fail_usage("--compress", fmt::format("0 to 9, not {}", level));
      job_.contents.site_level = job_.contents.tensor_level = level;
    }
    if (!told.empty()) told.pop_back();
    job_.contents.info.selection = told;
  }

  void describe(const CommandLine& line) {
    CaptureInfo& info = job_.contents.info;
    info.store = parse_store(values_["store"].as<std::string>());
    const bool has_text = !request_.text.empty() || !request_.token_ids.empty();
    if (!job_.contents.sites.empty()) {
      if (!has_text)
        fail_usage("capture", "give one of --text and --token-ids (--weights-only needs neither)");
      const TextInput input = read_text_input(request_, checkpoint_);
      for (const EvalWindow& window : input.windows)
        job_.contents.tokens.insert(job_.contents.tokens.end(), window.ids.begin(), window.ids.end());
      info.ctx = input.protocol.ctx;
      info.windows = static_cast<std::int64_t>(input.windows.size());
      info.text = input.name;
      info.text_sha256 = input.text_sha256;
      info.tokenizer_sha256 = input.tokenizer_sha256;
      info.token_ids_sha256 = input.ids_sha256;
      info.bos = bos_name(input.protocol.bos);
      job_.contents.rows = kept_rows(info.ctx, number("every"), number("tokens"));
    }
    info.model = request_.model;
    info.model_type = checkpoint_.config().model_type;
    info.model_sha256 = checkpoint_.fingerprint();
    info.compute = request_.compute;
    info.products = has_bf16_products() ? "bf16" : "f32";
    info.command_line = line.text;
    info.version = kVersion;
    info.git_revision = kGitRevision;
    info.created = now_utc();
  }

  void announce(const CapturePlan& plan) const {
    for (const std::string& warning : checkpoint_.warnings()) say(warning);
    const CaptureInfo& info = job_.contents.info;
    const std::string passes =
        info.windows == 0 ? "no text"
                          : fmt::format("{} windows of {} tokens, {} rows of each, {} passes", info.windows,
                                        info.ctx, job_.contents.rows.size(), plan.passes);
    say(fmt::format("{}: {} tensors and {} sites to write, {}, {} MiB of values, {} MiB of memory planned",
                    job_.path.string(), job_.contents.tensors.size(), job_.contents.sites.size(), passes,
                    plan.file_bytes >> 20, plan.bytes >> 20));
  }

  void conclude(const CaptureReport& report) const {
    std::error_code ignored;
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(job_.path, ignored));
    say(fmt::format("{}: {}{} datasets, {}", job_.path.string(),
                    report.was_complete ? "complete already: " : "", report.datasets, format_size(size)));
    if (report.overflows.values > 0)
      say(fmt::format("{}: {} values in {} datasets are beyond {} and were stored as infinities",
                      job_.path.string(), report.overflows.values, report.overflows.datasets,
                      store_name(job_.contents.info.store)));
  }

  const po::variables_map& values_;
  const CommonOptions& common_;
  InputRequest request_;
  Checkpoint checkpoint_;
  CaptureJob job_;
};

}  // namespace

int run_capture(const CommandLine& line) {
  CommonOptions common;
  const auto values = parse_command(line, capture_spec(), common);
  if (!values) return 0;
  if (common.output.empty()) fail_usage("capture", "no --output given (the HDF5 file to write)");
  return CaptureCommand(line, *values, common).run();
}

}  // namespace quantmap
