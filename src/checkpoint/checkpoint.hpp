// A checkpoint on disk, one view for every container: an HF directory (config.json and safetensors, one file
// or the shards its index names) or a GGUF v2/v3 file. Tensors have HF names and HF row order for every
// container (GGUF names are mapped, Llama's interleaved q/k rows are put back). Files are memory-mapped;
// nothing is read until asked for. Everything is validated when opened: each fault is one Error (input) line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.hpp"
#include "checkpoint/tensor_source.hpp"

namespace quantmap {

class Checkpoint final : public TensorSource {
 public:
  // `path`: a directory or a .gguf file.
  static Checkpoint open(const std::filesystem::path& path);
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint() override;

  const std::filesystem::path& path() const;
  const ModelConfig& config() const;
  std::span<const TensorEntry> tensors() const;  // in file order
  const TensorEntry* find(std::string_view name) const override;

  // Rows [row_begin, row_end) of a tensor (a 1-D tensor is one row), decoded to FP32 into out. F32, F16, BF16
  // exactly; GGUF block types decoded in FP32 and rounded once to BF16, as a conversion to HF would
  // (product.md). Thread-safe. Throws Error (input) if the tensor is absent or its type is not decoded.
  void read(std::string_view name, std::int64_t row_begin, std::int64_t row_end, float* out) const override;
  // Gives back the pages of a tensor that was read and is not needed again.
  void release(std::string_view name) const override;

  // SHA-256 over config and every tensor file, in a fixed order. GGUF: of the file. HF: of the lines that
  // `sha256sum config.json FILE…` prints, the tensor files by name.
  std::string fingerprint() const;
  std::int64_t file_bytes() const;  // of the tensor files
  // Things a user should know that are no errors: a head taken from the embeddings without the key (B25),
  // tensors that no layer uses (B47).
  std::span<const std::string> warnings() const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quantmap
