#include "app/bench_kernels.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/random.hpp"
#include "formats/bf16.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/divergence/divergence.hpp"
#include "kernels/rms_norm/rms_norm.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"
#include "model/operand.hpp"
#include "model/rope_table.hpp"

namespace quantmap {
namespace {

constexpr const char* kSection = "Kernels, one thread";

std::vector<float> gaussian(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  fill_gaussian(seed, values.data(), count);
  return values;
}

std::vector<std::uint16_t> to_bf16(const std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  bits.reserve(values.size());
  for (const float value : values) bits.push_back(bf16_from_float(value));
  return bits;
}

// bytes: read by one call.
BenchRow kernel_row(const KernelBench& bench, std::string name, std::string shape, std::int64_t values,
                    std::int64_t bytes, const std::vector<Elapsed>& times) {
  BenchRow row{kSection, std::move(name), std::move(shape), "ns/value", {}, {}, {}, "memcpy, one thread"};
  for (const Elapsed& time : times) {
    row.values.push_back(time.cpu / static_cast<double>(values) * 1e9);
    row.ratios.push_back(static_cast<double>(bytes) / time.cpu / 1e9 / bench.copy_bandwidth);
  }
  row.bytes_rate = static_cast<double>(bytes) / static_cast<double>(values) / spread_of(row.values).median;
  return row;
}

BenchRow attention_row(const KernelBench& bench, OperandType type) {
  const ModelConfig& c = *bench.config;
  const std::int64_t group = c.heads / c.kv_heads, width = group * c.head_dim;
  const std::vector<float> q = gaussian(bench.ctx * width, 1), k = gaussian(bench.ctx * c.head_dim, 2),
                           v = gaussian(bench.ctx * c.head_dim, 3);
  const std::vector<std::uint16_t> k16 = to_bf16(k), v16 = to_bf16(v);
  std::vector<float> out(q.size());
  const bool bf16 = type == OperandType::bf16;
  AttentionInput input;
  input.type = type;
  input.tokens = bench.ctx;
  input.group = group;
  input.head_dim = c.head_dim;
  input.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)));
  input.q = q.data();
  input.q_stride = width;
  input.k = bf16 ? static_cast<const void*>(k16.data()) : k.data();
  input.v = bf16 ? static_cast<const void*>(v16.data()) : v.data();
  input.out = out.data();
  input.out_stride = width;
  std::vector<std::byte> scratch(static_cast<std::size_t>(attention_scratch_bytes(input) + 64));
  void* aligned = scratch.data();
  std::size_t room = scratch.size();
  std::align(64, room - 64, aligned, room);
  BenchRow row{kSection,
               fmt::format("attention {}", bf16 ? "BF16" : "FP32"),
               fmt::format("{} tokens, {} heads on 1, {} wide", bench.ctx, group, c.head_dim),
               "us/window",
               {},
               {},
               {},
               ""};
  const auto call = [&] { attention(input, static_cast<std::byte*>(aligned)); };
  for (const Elapsed& time : time_calls(bench.repetitions, bench.least, call))
    row.values.push_back(time.cpu * 1e6);
  return row;
}

}  // namespace

std::vector<BenchRow> bench_kernels(const KernelBench& bench) {
  const ModelConfig& c = *bench.config;
  std::vector<BenchRow> rows;
  const auto timed = [&](auto&& body) { return time_calls(bench.repetitions, bench.least, body); };
  const auto size = [](std::int64_t r, std::int64_t cols) { return fmt::format("{}x{}", r, cols); };

  const std::int64_t norm_values = kTileRows * c.hidden_size;
  const std::vector<float> hidden = gaussian(norm_values, 1), weight = gaussian(c.hidden_size, 2);
  std::vector<float> normed(hidden.size());
  rows.push_back(
      kernel_row(bench, "rms_norm", size(kTileRows, c.hidden_size), norm_values, norm_values * 4, timed([&] {
                   rms_norm(hidden.data(), c.hidden_size, weight.data(), 1e-5f, kTileRows, c.hidden_size,
                            normed.data(), c.hidden_size);
                 })));

  const RopeTable table = rope_table(c.rope, c.head_dim, kTileRows);
  const std::int64_t width = std::int64_t{c.heads} * c.head_dim;
  std::vector<float> queries = gaussian(kTileRows * width, 3);
  rows.push_back(kernel_row(
      bench, "rope", size(kTileRows, width), kTileRows * width, kTileRows * width * 4, timed([&] {
        rope(queries.data(), width, kTileRows, c.heads, c.head_dim, table.cosines.data(), table.sines.data());
      })));

  const std::int64_t inner = std::min(kChunkRows, c.intermediate_size), inner_values = kTileRows * inner;
  const std::vector<float> gate = gaussian(inner_values, 4), up = gaussian(inner_values, 5);
  std::vector<float> product(gate.size());
  rows.push_back(kernel_row(
      bench, "swiglu", size(kTileRows, inner), inner_values, inner_values * 8,
      timed([&] { swiglu(gate.data(), inner, up.data(), inner, kTileRows, inner, product.data(), inner); })));

  rows.push_back(attention_row(bench, OperandType::bf16));
  rows.push_back(attention_row(bench, OperandType::f32));

  // Logits a little apart, as a scheme's are from the reference's. compare() overwrites its row: a fresh copy
  // each time, which is part of what is measured.
  const std::vector<float> reference_logits = gaussian(c.vocab_size, 6);
  std::vector<float> near = reference_logits, logits(near.size()), weights(near.size());
  for (std::size_t v = 0; v < near.size(); ++v) near[v] += 0.01f * static_cast<float>(v % 7);
  ReferenceRow reference;
  rows.push_back(kernel_row(
      bench, "scores of the reference", size(1, c.vocab_size), c.vocab_size, c.vocab_size * 4,
      timed([&] { reference = reference_row(reference_logits.data(), c.vocab_size, 0, weights.data()); })));
  double kept = 0;  // so that the scores are used
  rows.push_back(kernel_row(
      bench, "scores of a scheme (KL, …)", size(1, c.vocab_size), c.vocab_size, c.vocab_size * 12, timed([&] {
        logits = near;
        kept +=
            compare(logits.data(), c.vocab_size, 0, reference, reference_logits.data(), weights.data()).kl;
      })));
  if (std::isnan(kept)) rows.back().name += " (not a number)";
  return rows;
}

}  // namespace quantmap
