// The machine's own limits, as far as quantmap runs into them: copying memory, and oneDNN's products at the
// shapes of a model.
#pragma once

#include <cstdint>
#include <vector>

#include "app/bench_rows.hpp"
#include "checkpoint/config.hpp"
#include "kernels/matmul/matmul.hpp"

namespace quantmap {

// GB/s of memcpy between buffers that no cache holds, bytes read counted once. One thread: by its processor
// time, as all rates of one thread are.
std::vector<double> copy_bandwidth(int threads, int repetitions);

// Floating-point operations of one token, a product and its addition counted as two.
double linear_flops_per_token(const ModelConfig& config);  // all Linears and the head
// Scores and their sum over values, mean over the tokens of a window: only keys that a token sees.
double attention_flops_per_token(const ModelConfig& config, std::int64_t ctx);

// How a Linear is cut for a product.
struct ProductCut {
  std::int64_t rows = 0;     // tokens
  std::int64_t outputs = 0;  // 0: all of them
};

// All threads multiply at once, each its own tile, without quantizing, scaling or norms: a model's Linears,
// each with its share of the operations.
class ProductRate {
 public:
  ProductRate(const ModelConfig& config, OperandType type, const ProductCut& cut);
  // What the model's products take a token on all threads, measured over `least` processor seconds a shape.
  // `cpu`: of all threads together.
  Elapsed per_token(double least);

 private:
  struct Shape {
    std::int64_t out = 0, in = 0;
    double copies = 0;                 // Linears of this shape
    std::vector<PackedMatrix> chunks;  // as many as 64 MiB hold; used in turn
    std::int64_t pieces = 0;           // chunks of the Linear
  };
  std::int64_t rows_;
  std::vector<Shape> shapes_;
  std::vector<std::vector<std::byte>> input_;  // one a worker
  std::vector<std::vector<float>> output_;
};

}  // namespace quantmap
