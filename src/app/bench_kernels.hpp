// Rates of quantizers and kernels on one thread, at the sizes that the forward pass calls them with.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "app/bench_rows.hpp"
#include "checkpoint/config.hpp"

namespace quantmap {

struct KernelBench {
  const ModelConfig* config = nullptr;
  std::int64_t ctx = 0;
  int repetitions = 0;
  double least = 0;           // seconds of one repetition
  double copy_bandwidth = 0;  // GB/s of one thread, what ratios are to
};

// Every format in its default granularity, decoded and as operands: a tile of activations and a chunk of
// weights. Then, for each, what quantizing and measuring at once takes.
std::vector<BenchRow> bench_quantizers(const KernelBench& bench);
// Norm, SwiGLU, attention of one key-value head, scores of one token.
std::vector<BenchRow> bench_kernels(const KernelBench& bench);

}  // namespace quantmap
