// The forward pass as a share of what the same machine's products allow, and a sweep of schemes.
#pragma once

#include <cstdint>
#include <vector>

#include "app/bench_rows.hpp"
#include "checkpoint/checkpoint.hpp"
#include "model/operand.hpp"

namespace quantmap {

struct ForwardBench {
  const Checkpoint* checkpoint = nullptr;
  std::int64_t windows = 0, ctx = 0;
  std::int64_t memory = 0;  // for the sweep
  int repetitions = 0;
  double least = 0;  // seconds of products for each shape
};

// Products, forward and products again, by turns: each forward is compared with the products around it. Rows:
// the product rate, tokens a second, and what part of the machine's product rate that is.
std::vector<BenchRow> bench_forward(const ForwardBench& bench, Compute compute);
// Reference and schemes with everything that is scored, against BF16 products.
std::vector<BenchRow> bench_sweep(const ForwardBench& bench);

}  // namespace quantmap
