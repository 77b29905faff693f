// A capture, read back: the model's configuration, its weights as a TensorSource (LinearWeights and whatever
// else reads a Checkpoint's tensors reads them from here), and the rows of each captured site in FP32. Whole
// files only: one that is foreign, newer than this program, cut short or unfinished is refused by name when
// it is opened. All members may be called from several threads; HDF5 itself works for one at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/hdf5.hpp"
#include "checkpoint/config.hpp"
#include "checkpoint/tensor_source.hpp"
#include "model/operand.hpp"

namespace quantmap {

// What a capture says about itself: its root attributes (docs/capture.md).
struct CaptureInfo {
  std::string model, model_type;  // the path as it was given
  std::string model_sha256, tokenizer_sha256;
  std::string text, text_sha256, token_ids_sha256;  // text: the path; empty: only weights were captured
  Compute compute = Compute::bf16;
  std::string products;  // `bf16` or `f32`: how BF16 operands were multiplied, by what the processor has
  StoreType store = StoreType::f32;
  std::int64_t ctx = 0, windows = 0;
  std::string bos;
  std::string command_line, version, git_revision, created;
  std::string selection;  // --sites, --layers and so on, as they were given
};

class Capture final : public TensorSource {
 public:
  // Throws Error (input) naming the file and what is wrong with it.
  static Capture open(const std::filesystem::path& path);
  // Whether a file begins as HDF5 files do: to tell a capture from a model.
  static bool is_hdf5(const std::filesystem::path& path);
  Capture(Capture&&) noexcept;
  Capture& operator=(Capture&&) noexcept;
  ~Capture() override;

  const std::filesystem::path& path() const;
  const CaptureInfo& info() const;
  const ModelConfig& config() const;  // of the model, as its checkpoint gave it

  // The tokens of a window, all ctx of them, also where not every row was kept.
  std::span<const std::int32_t> tokens(std::int64_t window) const;
  // Positions of the kept rows in each window, ascending; all of them: 0 … ctx-1. A site has
  // rows().size() rows for each window.
  std::span<const std::int32_t> rows() const;
  bool keeps_all_rows() const;

  // Sites as product.md names them: `model.layers.3.mlp.down_proj input`, `model.layers.3.self_attn key`.
  std::span<const std::string> sites() const;
  bool has(std::string_view site) const;
  std::int64_t width(std::string_view site) const;      // of a row; key and value: kv_heads * head_dim
  std::int64_t overflows(std::string_view site) const;  // finite values that became infinite when stored
  // Kept rows [row_begin, row_end) of one window (indices into rows()), in FP32, into out [rows][width].
  void read_rows(std::string_view site, std::int64_t window, std::int64_t row_begin, std::int64_t row_end,
                 float* out) const;

  std::span<const TensorEntry> tensors() const;  // captured weights; dtype `F32`, `BF16` or `F16` as stored
  const TensorEntry* find(std::string_view name) const override;
  void read(std::string_view name, std::int64_t row_begin, std::int64_t row_end, float* out) const override;
  void release(std::string_view) const override {}

 private:
  struct State;
  explicit Capture(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quantmap
