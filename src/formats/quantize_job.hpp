// What the fast quantizers of the kinds (quantize_*.cpp) share; of use to quantize.cpp only.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/quantize.hpp"
#include "formats/row_kernels.hpp"

namespace quantmap {

// Where rows go: decoded floats in place, or through one row of floats into BF16 operands.
class RowOutput {
 public:
  explicit RowOutput(float* decoded) : decoded_(decoded) {}
  RowOutput(std::uint16_t* operand, std::int64_t longest)
      : operand_(operand), scratch_(static_cast<std::size_t>(longest)) {}

  // A run of values from index `first` of the matrix: write it to begin(), then call end().
  float* begin(std::int64_t first) { return operand_ ? scratch_.data() : decoded_ + first; }
  void end(std::int64_t first, std::int64_t count) {
    if (operand_) outside_ += pack_bf16(scratch_.data(), count, operand_ + first);
  }
  std::int64_t outside() const { return outside_; }

 private:
  float* decoded_ = nullptr;
  std::uint16_t* operand_ = nullptr;
  std::vector<float> scratch_;
  std::int64_t outside_ = 0;
};

struct Job {
  const QuantSpec& spec;
  std::int64_t rows, cols;
  const float* x;
  const TensorRange* range;
  bool decode;   // write decoded values; else operands before their outer scale
  float* outer;  // outer scales; null where there are none
  RowOutput& output;
  QuantCounts& counts;
};

void quantize_cast(const Job& job);
void quantize_scaled(const Job& job);
void quantize_mx(const Job& job);
void quantize_nvfp4(const Job& job);
void quantize_lookup(const Job& job);
void quantize_ggml(const Job& job);

// Values of a lookup format that go through RowOutput at once: whole blocks.
std::int64_t lookup_chunk(const QuantSpec& spec);

}  // namespace quantmap
