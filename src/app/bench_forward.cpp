#include "app/bench_forward.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/bench_limits.hpp"
#include "core/parallel.hpp"
#include "core/random.hpp"
#include "model/forward.hpp"
#include "sweep/sweep.hpp"

namespace quantmap {
namespace {

constexpr int kSweepRepetitions = 3;  // a sweep takes as long as several forwards
// Weights alone, weights and activations in integers, and two 4-bit formats, one with a quantized cache.
const std::vector<std::string> kSchemes = {"W4A16", "W8A8", "MXFP4", "NVFP4+KVFP8"};

std::vector<EvalWindow> random_windows(const ForwardBench& bench) {
  SplitMix64 random(1);
  const auto vocab = static_cast<std::uint64_t>(bench.checkpoint->config().vocab_size);
  std::vector<EvalWindow> windows(static_cast<std::size_t>(bench.windows));
  for (EvalWindow& window : windows) {
    for (std::int64_t t = 0; t < bench.ctx; ++t)
      window.ids.push_back(static_cast<std::int32_t>(random.next() % vocab));
    window.targets.assign(window.ids.begin() + 1, window.ids.end());
    window.targets.push_back(-1);
    window.weight = static_cast<double>(bench.ctx - 1);
  }
  return windows;
}

BenchRow row_of(std::string name, std::string shape, std::string unit) {
  return {"Forward pass, all threads", std::move(name), std::move(shape), std::move(unit), {}, {}, {}, ""};
}

}  // namespace

std::vector<BenchRow> bench_forward(const ForwardBench& bench, Compute compute) {
  const ModelConfig& config = bench.checkpoint->config();
  const std::vector<EvalWindow> windows = random_windows(bench);
  const double tokens = static_cast<double>(bench.windows * bench.ctx);
  const OperandType type = compute == Compute::f32 ? OperandType::f32 : OperandType::bf16;
  const char* label = compute == Compute::f32 ? "FP32" : "BF16";
  ProductRate products(config, type, {kTileRows, kChunkRows});
  ProductRate whole(config, type, {bench.ctx, 0});
  Walker walker;
  walker.compute = compute;
  Forward forward(*bench.checkpoint, {walker}, {bench.windows * bench.ctx, bench.ctx});
  const auto pass = [&] {
    std::vector<PassWindow> pass_windows;
    for (std::size_t w = 0; w < windows.size(); ++w)
      pass_windows.push_back({static_cast<std::int64_t>(w), windows[w].ids});
    forward.start(std::move(pass_windows));
    for (int layer = 0; layer < config.layers; ++layer) forward.run_layer(layer);
    forward.run_head([&](std::int64_t) { return RowRange{0, bench.ctx}; }, [](const HeadTile&) {});
  };
  pass();  // warm

  const double linear = linear_flops_per_token(config),
               attention = attention_flops_per_token(config, bench.ctx);
  BenchRow cut = row_of(fmt::format("{} products, {} tokens by {} outputs", label, kTileRows, kChunkRows),
                        "the model's Linears", "GFLOP/s");
  BenchRow uncut = row_of(fmt::format("{} products, {} tokens by all outputs", label, bench.ctx),
                          "the model's Linears", "GFLOP/s");
  const std::string shape = fmt::format("{} windows of {}", bench.windows, bench.ctx);
  BenchRow rate = row_of(fmt::format("{} forward", label), shape, "tokens/s");
  rate.ratio_to = fmt::format("{} products; operations of Linears and head", label);
  BenchRow counted = row_of(fmt::format("{} forward, attention counted", label), shape, "GFLOP/s");
  counted.ratio_to = fmt::format("{} products; operations of attention too", label);
  BenchRow busy = row_of(fmt::format("{} forward, processor time", label), shape, "us/token");
  busy.ratio_to = fmt::format("{} products; processor time of each", label);
  for (int i = 0; i < bench.repetitions; ++i) {
    const Elapsed before = products.per_token(bench.least);
    const Elapsed time = elapsed(pass);
    const Elapsed after = products.per_token(bench.least);
    const double seconds = time.wall / tokens, bound = (before.wall + after.wall) / 2;
    cut.values.push_back(linear / bound / 1e9);
    uncut.values.push_back(linear / whole.per_token(bench.least).wall / 1e9);
    rate.values.push_back(1 / seconds);
    rate.ratios.push_back(bound / seconds);
    counted.values.push_back((linear + attention) / seconds / 1e9);
    counted.ratios.push_back(bound / seconds * (1 + attention / linear));
    busy.values.push_back(time.cpu / tokens * 1e6);
    busy.ratios.push_back((before.cpu + after.cpu) / 2 / (time.cpu / tokens));
  }
  return {cut, uncut, rate, counted, busy};
}

std::vector<BenchRow> bench_sweep(const ForwardBench& bench) {
  const ModelConfig& config = bench.checkpoint->config();
  const std::vector<EvalWindow> windows = random_windows(bench);
  const std::vector<Scheme> schemes = parse_schemes(kSchemes);
  SweepJob job;
  job.checkpoint = bench.checkpoint;
  job.walkers.resize(1);
  for (const Scheme& scheme : schemes) job.walkers.push_back({scheme, Compute::bf16});
  job.windows = &windows;
  job.sink = [](const PassResult&) {};
  const SweepPlan plan = plan_sweep(*bench.checkpoint, job.walkers, windows, bench.memory);
  ProductRate products(config, OperandType::bf16, {kTileRows, kChunkRows});
  const auto tokens = static_cast<double>(bench.windows * bench.ctx);
  std::string names;
  for (const std::string& name : kSchemes) names.append(names.empty() ? "" : " ").append(name);
  BenchRow row = row_of(fmt::format("sweep: reference, {}", names),
                        fmt::format("{} windows of {}", bench.windows, bench.ctx), "tokens x schemes/s");
  row.ratio_to = "BF16 products; operations of reference and schemes";
  for (int i = 0; i < std::min(bench.repetitions, kSweepRepetitions); ++i) {
    const Elapsed before = products.per_token(bench.least);
    const double seconds = elapsed([&] { run_sweep(job, plan); }).wall;
    const double bound = (before.wall + products.per_token(bench.least).wall) / 2;
    row.values.push_back(tokens * static_cast<double>(schemes.size()) / seconds);
    row.ratios.push_back(bound * tokens * static_cast<double>(job.walkers.size()) / seconds);
  }
  return {row};
}

}  // namespace quantmap
