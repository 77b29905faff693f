// Kernels at the sizes of small and middle models. Arguments are named; rates are values a second.
#include <benchmark/benchmark.h>

#include <cmath>

#include "bench/inputs.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/difference/difference.hpp"
#include "kernels/divergence/divergence.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/rms_norm/rms_norm.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"

namespace quantmap::bench {
namespace {

constexpr std::int64_t kRows = 128;

// Items are floating-point operations, a product and its addition counted as two.
void product(benchmark::State& state, OperandType type) {
  const std::int64_t rows = state.range(0), in = state.range(1), out = state.range(2);
  const std::vector<float> x = gaussian(rows * in, 1), w = gaussian(out * in, 2);
  const std::vector<std::uint16_t> x16 = gaussian_bf16(rows * in, 1), w16 = gaussian_bf16(out * in, 2);
  const bool bf16 = type == OperandType::bf16;
  const PackedMatrix packed(type, bf16 ? static_cast<const void*>(w16.data()) : w.data(), out, in, rows);
  std::vector<float> y(static_cast<std::size_t>(rows * out));
  for ([[maybe_unused]] auto _ : state) {
    packed.multiply(bf16 ? static_cast<const void*>(x16.data()) : x.data(), rows, y.data());
    benchmark::DoNotOptimize(y.data());
  }
  state.SetItemsProcessed(state.iterations() * 2 * rows * in * out);
}
void product_shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "in", "out"});
  for (const std::int64_t rows : {64, 128, 512})
    for (const std::int64_t in : {576, 2048})
      for (const std::int64_t out : {64, 512}) benchmark->Args({rows, in, out});
}
BENCHMARK_CAPTURE(product, BF16, OperandType::bf16)->Apply(product_shapes);
BENCHMARK_CAPTURE(product, FP32, OperandType::f32)->Apply(product_shapes);

void packing(benchmark::State& state) {
  const std::int64_t in = state.range(0), out = state.range(1);
  const std::vector<std::uint16_t> w = gaussian_bf16(out * in);
  for ([[maybe_unused]] auto _ : state) {
    const PackedMatrix packed(OperandType::bf16, w.data(), out, in, kRows);
    benchmark::DoNotOptimize(packed.bytes());
  }
  state.SetItemsProcessed(state.iterations() * in * out);
}
BENCHMARK(packing)->ArgNames({"in", "out"})->Args({576, 512})->Args({1536, 512})->Args({2048, 512});

void attention_of_one_head(benchmark::State& state, OperandType type) {
  AttentionInput input;
  input.type = type;
  input.tokens = state.range(0);
  input.group = state.range(1);
  input.head_dim = state.range(2);
  input.window = state.range(3);
  input.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(input.head_dim)));
  input.q_stride = input.out_stride = input.group * input.head_dim;
  const std::vector<float> q = gaussian(input.tokens * input.q_stride, 1),
                           k = gaussian(input.tokens * input.head_dim, 2),
                           v = gaussian(input.tokens * input.head_dim, 3);
  const std::vector<std::uint16_t> k16 = gaussian_bf16(input.tokens * input.head_dim, 2),
                                   v16 = gaussian_bf16(input.tokens * input.head_dim, 3);
  const bool bf16 = type == OperandType::bf16;
  std::vector<float> out(q.size());
  input.q = q.data();
  input.k = bf16 ? static_cast<const void*>(k16.data()) : k.data();
  input.v = bf16 ? static_cast<const void*>(v16.data()) : v.data();
  input.out = out.data();
  const AlignedScratch scratch(attention_scratch_bytes(input));
  for ([[maybe_unused]] auto _ : state) {
    attention(input, scratch.data());
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * input.tokens * input.group);  // queries
}
void attention_shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"tokens", "group", "dim", "window"});
  for (const std::int64_t tokens : {512, 2048}) benchmark->Args({tokens, 3, 64, 0});
  benchmark->Args({2048, 4, 128, 0})->Args({2048, 4, 128, 512});
}
BENCHMARK_CAPTURE(attention_of_one_head, BF16, OperandType::bf16)->Apply(attention_shapes);
BENCHMARK_CAPTURE(attention_of_one_head, FP32, OperandType::f32)->Apply(attention_shapes);

void norm(benchmark::State& state) {
  const std::int64_t cols = state.range(0);
  const std::vector<float> x = gaussian(kRows * cols, 1), weight = gaussian(cols, 2);
  std::vector<float> out(x.size());
  for ([[maybe_unused]] auto _ : state) {
    rms_norm(x.data(), cols, weight.data(), 1e-5f, kRows, cols, out.data(), cols);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * kRows * cols);
}
BENCHMARK(norm)->ArgName("cols")->Arg(256)->Arg(576)->Arg(4096);

void rotary(benchmark::State& state) {
  const std::int64_t heads = state.range(0), dim = state.range(1), width = heads * dim;
  std::vector<float> x = gaussian(kRows * width, 1);
  // A turn keeps a pair's length, so that values stay as they are over any number of calls.
  std::vector<float> cosines(static_cast<std::size_t>(kRows * dim / 2), 0.6f), sines(cosines.size(), 0.8f);
  for ([[maybe_unused]] auto _ : state) {
    rope(x.data(), width, kRows, heads, dim, cosines.data(), sines.data());
    benchmark::DoNotOptimize(x.data());
  }
  state.SetItemsProcessed(state.iterations() * kRows * width);
}
BENCHMARK(rotary)->ArgNames({"heads", "dim"})->Args({9, 64})->Args({32, 128});

void gated(benchmark::State& state) {
  const std::int64_t cols = state.range(0);
  const std::vector<float> gate = gaussian(kRows * cols, 1), up = gaussian(kRows * cols, 2);
  std::vector<float> out(gate.size());
  for ([[maybe_unused]] auto _ : state) {
    swiglu(gate.data(), cols, up.data(), cols, kRows, cols, out.data(), cols);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * kRows * cols);
}
BENCHMARK(gated)->ArgName("cols")->Arg(512);

void scores_of_reference(benchmark::State& state) {
  const std::int64_t vocab = state.range(0);
  const std::vector<float> logits = gaussian(vocab);
  std::vector<float> weights(logits.size());
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(reference_row(logits.data(), vocab, 0, weights.data()));
  state.SetItemsProcessed(state.iterations() * vocab);
}
BENCHMARK(scores_of_reference)->ArgName("vocab")->Arg(4096)->Arg(49152)->Arg(151936);

void scores_of_scheme(benchmark::State& state) {
  const std::int64_t vocab = state.range(0);
  const std::vector<float> reference_logits = gaussian(vocab, 1), near = gaussian(vocab, 2);
  std::vector<float> weights(near.size()), logits(near.size());
  const ReferenceRow reference = reference_row(reference_logits.data(), vocab, 0, weights.data());
  for ([[maybe_unused]] auto _ : state) {
    logits = near;  // compare() overwrites its row; the copy is timed with it
    benchmark::DoNotOptimize(
        compare(logits.data(), vocab, 0, reference, reference_logits.data(), weights.data()));
  }
  state.SetItemsProcessed(state.iterations() * vocab);
}
BENCHMARK(scores_of_scheme)->ArgName("vocab")->Arg(4096)->Arg(49152)->Arg(151936);

void difference_of_rows(benchmark::State& state) {
  const std::int64_t cols = state.range(0);
  const std::vector<float> reference = gaussian(cols, 1), values = gaussian(cols, 2);
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(row_difference(reference.data(), values.data(), cols));
  state.SetItemsProcessed(state.iterations() * cols);
}
BENCHMARK(difference_of_rows)->ArgName("cols")->Arg(256)->Arg(576)->Arg(4096);

}  // namespace
}  // namespace quantmap::bench
