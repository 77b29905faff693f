// Where weights are read from: a checkpoint, or a capture of one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quantmap {

struct TensorEntry {
  std::string name;                 // HF: `model.layers.0.self_attn.q_proj.weight`
  std::string dtype;                // as the file names it: `BF16`, `F32`, `Q4_1`, …
  std::vector<std::int64_t> shape;  // row-major, HF order: [out][in]
  std::int64_t bytes = 0;           // in the file
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;

  virtual const TensorEntry* find(std::string_view name) const = 0;  // null if there is none
  // Rows [row_begin, row_end) of a tensor (a 1-D tensor is one row), in FP32, into out. Thread-safe. Throws
  // Error (input) naming file and tensor if it is absent or cannot be decoded.
  virtual void read(std::string_view name, std::int64_t row_begin, std::int64_t row_end,
                    float* out) const = 0;
  // A tensor that was read and is not needed again.
  virtual void release(std::string_view name) const = 0;

 protected:
  TensorSource() = default;
  TensorSource(const TensorSource&) = default;
  TensorSource(TensorSource&&) = default;
  TensorSource& operator=(const TensorSource&) = default;
  TensorSource& operator=(TensorSource&&) = default;
};

}  // namespace quantmap
