// Every format of the registry, in the default granularity of weights: decoded values, operands, errors.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>

#include "bench/inputs.hpp"
#include "formats/quantize.hpp"
#include "kernels/quantize_error/quantize_error.hpp"
#include "scheme/scheme.hpp"

namespace quantmap::bench {
namespace {

constexpr std::int64_t kRows = 128, kCols = 1024;

void decoded(benchmark::State& state, const QuantSpec& spec) {
  const std::vector<float> x = gaussian(kRows * kCols);
  std::vector<float> out(x.size());
  QuantCounts counts;
  for ([[maybe_unused]] auto _ : state) {
    quantize_dequantize(spec, kRows, kCols, x.data(), out.data(), nullptr, &counts);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * kRows * kCols);
  state.SetBytesProcessed(state.iterations() * kRows * kCols * 4);
}

void operand(benchmark::State& state, const QuantSpec& spec) {
  const std::vector<float> x = gaussian(kRows * kCols);
  std::vector<std::uint16_t> out(x.size());
  std::vector<float> outer(static_cast<std::size_t>(
      std::max(std::int64_t{1}, outer_scale_count(operand_form(spec), kRows, kCols))));
  QuantCounts counts;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(
        quantize_operand_bf16(spec, kRows, kCols, x.data(), out.data(), outer.data(), nullptr, &counts));
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * kRows * kCols);
  state.SetBytesProcessed(state.iterations() * kRows * kCols * 4);
}

void measured(benchmark::State& state, const QuantSpec& spec) {
  const std::vector<float> x = gaussian(kRows * kCols);
  std::vector<RowDifference> errors(static_cast<std::size_t>(kRows));
  QuantCounts counts;
  for ([[maybe_unused]] auto _ : state) {
    quantize_error(spec, kRows, kCols, x.data(), nullptr, errors.data(), &counts);
    benchmark::DoNotOptimize(errors.data());
  }
  state.SetItemsProcessed(state.iterations() * kRows * kCols);
  state.SetBytesProcessed(state.iterations() * kRows * kCols * 4);
}

[[maybe_unused]] const bool registered = [] {
  for (const Format& format : formats()) {
    const QuantSpec spec = parse_quant_spec(format.id, Role::weight);
    const std::string name = spelling(spec, Role::weight);
    benchmark::RegisterBenchmark(("decoded/" + name).c_str(), decoded, spec);
    benchmark::RegisterBenchmark(("operand/" + name).c_str(), operand, spec);
    benchmark::RegisterBenchmark(("measured/" + name).c_str(), measured, spec);
  }
  return true;
}();

}  // namespace
}  // namespace quantmap::bench
