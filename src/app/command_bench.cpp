#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "app/bench_forward.hpp"
#include "app/bench_kernels.hpp"
#include "app/bench_limits.hpp"
#include "app/machine.hpp"
#include "app/options.hpp"
#include "app/version.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/progress.hpp"
#include "sweep/sweep.hpp"

namespace quantmap {
namespace {

namespace po = boost::program_options;

constexpr double kLeast = 0.004;         // seconds of one repetition of a quantizer or kernel
constexpr double kLeastProducts = 0.02;  // seconds of products, for each shape
constexpr double kPassFlops = 6e11;      // of one forward, unless --windows says otherwise
constexpr std::int64_t kMostWindows = 16;

CommandSpec bench_spec() {
  CommandSpec spec;
  spec.name = "bench";
  spec.usage = "[MODEL] [options]";
  spec.does =
      "This machine's rates: copying, products, each quantizer, the kernels, the forward pass and a sweep, "
      "as ratios\n"
      "to the machine's own limits, measured in the same run at the model's sizes (default: the demo model).";
  po::options_description options("Options of bench");
  options.add_options()                                                                                   //
      ("model", po::value<std::string>(), "directory with config.json and safetensors, or a .gguf file")  //
      ("ctx", po::value<std::int64_t>()->default_value(512), "tokens in a window")                        //
      ("windows", po::value<std::int64_t>(), "windows in a pass (default: by the model's size)")          //
      ("repetitions", po::value<int>()->default_value(5), "of every measurement");
  spec.options.add(options);
  spec.positionals = {"model"};
  spec.examples =
      "  quantmap bench\n"
      "  quantmap bench model.gguf --windows 8 --format csv --output rates.csv\n";
  return spec;
}

struct BenchRequest {
  std::string model;
  std::int64_t ctx = 0;
  std::optional<std::int64_t> windows;
  int repetitions = 0;
  CommonOptions common;
};

// Enough for every thread to have tiles, and for a pass to be worth timing.
std::int64_t default_windows(const ModelConfig& config, std::int64_t ctx) {
  const std::int64_t busy = (4 * thread_count() * kTileRows + ctx - 1) / ctx;
  const auto worth =
      static_cast<std::int64_t>(kPassFlops / (linear_flops_per_token(config) * static_cast<double>(ctx)));
  return std::max(busy, std::min(worth, kMostWindows));
}

std::vector<BenchRow> measure(const BenchRequest& request, const Checkpoint& checkpoint,
                              std::int64_t windows) {
  const ModelConfig& config = checkpoint.config();
  ProgressOptions shown;
  shown.label = "bench";
  shown.unit = "parts";
  shown.total = 6;
  shown.quiet = request.common.quiet;
  Progress progress(shown);
  std::vector<BenchRow> rows;
  const auto add = [&](const char* label, auto&& part) {
    progress.set_label(label);
    const std::vector<BenchRow> more = part();
    rows.insert(rows.end(), more.begin(), more.end());
    progress.advance();
  };

  KernelBench kernels{&config, request.ctx, request.repetitions, kLeast, 0};
  add("copy", [&] {
    BenchRow one{
        "Memory", "memcpy, one thread", "128 MiB", "GB/s", copy_bandwidth(1, request.repetitions), {}, {},
        ""};
    BenchRow all{"Memory",
                 fmt::format("memcpy, {} threads", thread_count()),
                 "128 MiB",
                 "GB/s",
                 copy_bandwidth(thread_count(), request.repetitions),
                 {},
                 {},
                 "memcpy, one thread"};
    kernels.copy_bandwidth = spread_of(one.values).median;
    for (const double rate : all.values) all.ratios.push_back(rate / kernels.copy_bandwidth);
    return std::vector<BenchRow>{one, all};
  });
  add("quantizers", [&] { return bench_quantizers(kernels); });
  add("kernels", [&] { return bench_kernels(kernels); });

  const ForwardBench forward{&checkpoint,         windows,
                             request.ctx,         request.common.memory.value_or(default_memory()),
                             request.repetitions, kLeastProducts};
  add("forward in BF16", [&] { return bench_forward(forward, Compute::bf16); });
  add("forward in FP32", [&] { return bench_forward(forward, Compute::f32); });
  add("sweep", [&] { return bench_sweep(forward); });
  return rows;
}

std::string written(const std::vector<BenchRow>& rows, const BenchRequest& request,
                    const Checkpoint& checkpoint) {
  const CommonOptions& common = request.common;
  if (common.format == OutputFormat::csv || common.format == OutputFormat::json)
    return write(flat_table(rows, machine(), request.model), common.format);
  std::vector<Table> tables = section_tables(rows);
  const ModelConfig& config = checkpoint.config();
  const double linear = linear_flops_per_token(config),
               attention = attention_flops_per_token(config, request.ctx);
  tables.back().notes = {
      fmt::format("{}; model: {}", machine(), request.model),
      fmt::format(
          "{:.4g} MFLOP a token in Linears and head, {:.4g} in attention at {} tokens (keys that are seen)",
          linear / 1e6, attention / 1e6, request.ctx),
      "ratios: to what was measured right before and after, or at the start of this run; 1 = the limit",
      "rates of one thread are by its processor time, those of all threads by the clock unless they say "
      "otherwise",
  };
  std::string text;
  for (const Table& table : tables)
    text.append(text.empty() ? "" : "\n") += write(table, common.format, output_width(common));
  return text;
}

}  // namespace

int run_bench(const CommandLine& line) {
  BenchRequest request;
  const auto values = parse_command(line, bench_spec(), request.common);
  if (!values) return 0;
  const std::filesystem::path demo =
      std::filesystem::exists("datasets/demo/config.json") ? "datasets/demo" : kDemoDir;
  request.model = values->count("model") ? (*values)["model"].as<std::string>() : demo.string();
  request.ctx = (*values)["ctx"].as<std::int64_t>();
  request.repetitions = (*values)["repetitions"].as<int>();
  if (values->count("windows")) request.windows = (*values)["windows"].as<std::int64_t>();
  if (request.ctx < 1 || request.ctx > (std::int64_t{1} << 20)) fail_usage("--ctx", "1 to 1048576");
  if (request.repetitions < 1 || request.repetitions > 1000) fail_usage("--repetitions", "1 to 1000");
  if (request.windows && (*request.windows < 1 || *request.windows > 4096))
    fail_usage("--windows", "1 to 4096");
  const Checkpoint checkpoint = Checkpoint::open(request.model);
  const std::int64_t windows = request.windows.value_or(default_windows(checkpoint.config(), request.ctx));
  emit(request.common, written(measure(request, checkpoint, windows), request, checkpoint));
  return 0;
}

}  // namespace quantmap
