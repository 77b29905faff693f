#include "model/operand.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/aligned.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "formats/bf16_array.hpp"
#include "formats/row_kernels.hpp"
#include "model/operand_scale.hpp"

namespace quantmap {
namespace {

bool is_fp16(const QuantSpec& spec) { return spec.format->id == "fp16"; }

// [rows][cols] -> one contiguous [rows][length] a k block, block after block.
template <typename T>
void to_k_blocks(const T* from, std::int64_t rows, std::int64_t cols, std::int64_t block, T* to) {
  for (std::int64_t begin = 0; begin < cols; begin += block) {
    const std::int64_t length = std::min(block, cols - begin);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memcpy(to, from + r * cols + begin, static_cast<std::size_t>(length) * sizeof(T));
      to += length;
    }
  }
}

// Specs whose result needs the whole matrix at once: double quantization averages all block maxima, and tiles
// that chunks of kChunkRows would cut, and `mse` for one scale tries it on all values.
bool needs_whole_matrix(const QuantSpec& spec) {
  return spec.nested || (spec.method == Method::mse && spec.granularity == Granularity::tensor) ||
         (spec.granularity == Granularity::tile && kChunkRows % spec.tile_rows != 0);
}

// The form in which a Linear's weights meet its activations. FP8 groups along a row are decoded, as INT4
// groups are: each output has scales of its own along the summed axis, so no partial product has one to
// share.
OperandForm weight_operand_form(const QuantSpec& spec) {
  const OperandForm form = needs_whole_matrix(spec) ? OperandForm{} : operand_form(spec);
  return form.outer == OuterScale::row_group ? OperandForm{} : form;
}

// NF4 runs its blocks over the flattened tensor. In weights they may cross rows; a token's activation or
// cached value must not depend on its neighbours, so there each row is quantized by itself.
bool crosses_rows(const QuantSpec& spec, std::int64_t cols) {
  return spec.format->kind == FormatKind::lookup && cols % spec.format->block != 0;
}

}  // namespace

void quantize_tokens(const QuantSpec& spec, std::int64_t rows, std::int64_t cols, const float* x, float* out,
                     const TensorRange* range, QuantCounts* counts) {
  if (!crosses_rows(spec, cols)) {
    quantize_dequantize(spec, rows, cols, x, out, range, counts);
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r)
    quantize_dequantize(spec, 1, cols, x + r * cols, out + r * cols, range, counts);
}

std::int64_t quantize_token_operands(const QuantSpec& spec, std::int64_t rows, std::int64_t cols,
                                     const float* x, std::uint16_t* operand, float* outer,
                                     const TensorRange* range, QuantCounts* counts) {
  if (!crosses_rows(spec, cols))
    return quantize_operand_bf16(spec, rows, cols, x, operand, outer, range, counts);
  std::int64_t tiny = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    tiny += quantize_operand_bf16(spec, 1, cols, x + r * cols, operand + r * cols, outer, range, counts);
  return tiny;
}

const char* compute_name(Compute compute) {
  switch (compute) {
    case Compute::f32:
      return "f32";
    case Compute::bf16_serve:
      return "bf16-serve";
    case Compute::bf16:
      break;
  }
  return "bf16";
}

LinearForm linear_form(const QuantSpec& weight, const QuantSpec& activation, Compute compute) {
  LinearForm form{weight, activation, compute != Compute::f32, OperandType::bf16, 0};
  if (compute == Compute::f32 || is_fp16(weight) || is_fp16(activation)) {
    form.type = OperandType::f32;  // FP16 values do not fit BF16
    return form;
  }
  const OperandForm w = weight_operand_form(weight);
  const OperandForm x = operand_form(activation);
  if (w.outer == OuterScale::tile)
    form.k_block = w.group;
  else if (x.outer == OuterScale::row_group)
    form.k_block = x.group;
  return form;
}

std::int64_t activation_scratch_bytes(const LinearForm& form, std::int64_t rows, std::int64_t cols) {
  const std::int64_t values = rows * cols;
  if (form.type == OperandType::f32) return aligned_bytes(values * 4);
  const std::int64_t scales =
      std::max({std::int64_t{1}, rows, outer_scale_count(operand_form(form.activation), rows, cols)});
  // The operand, its copy in k blocks, decoded values where they are needed, scales and lifts.
  return 2 * aligned_bytes(values * 2) + (form.k_block > 0 ? aligned_bytes(values * 4) : 0) +
         aligned_bytes(scales * 4) + aligned_bytes(rows * 4);
}

ActivationTile prepare_activation(const LinearForm& form, std::int64_t rows, std::int64_t cols,
                                  const float* x, const TensorRange* range, std::byte* scratch,
                                  QuantCounts* counts) {
  ActivationTile tile;
  tile.rows = rows;
  tile.cols = cols;
  const QuantSpec& spec = form.activation;
  if (form.type == OperandType::f32) {
    auto* out = reinterpret_cast<float*>(scratch);
    tile.operand = out;
    if (!spec.is_reference())
      quantize_tokens(spec, rows, cols, x, out, range, counts);
    else if (form.round_to_bf16)
      round_array_to_bf16(x, rows * cols, out);
    else
      std::copy(x, x + rows * cols, out);
    return tile;
  }
  auto* operand = reinterpret_cast<std::uint16_t*>(scratch);
  auto* blocked = reinterpret_cast<std::uint16_t*>(scratch + aligned_bytes(rows * cols * 2));
  std::byte* rest = scratch + 2 * aligned_bytes(rows * cols * 2);
  tile.operand = operand;
  if (spec.is_reference()) {
    array_to_bf16(x, rows * cols, operand);
  } else {
    const OperandForm x_form = operand_form(spec);
    if (x_form.outer == OuterScale::row_group && x_form.group != form.k_block) {
      // Groups that are not the weights' blocks: decoded, as a kernel without partial products would.
      auto* decoded = reinterpret_cast<float*>(rest);
      quantize_tokens(spec, rows, cols, x, decoded, range, counts);
      array_to_bf16(decoded, rows * cols, operand);
    } else {
      auto* scale = reinterpret_cast<float*>(rest + (form.k_block > 0 ? aligned_bytes(rows * cols * 4) : 0));
      const std::int64_t tiny = quantize_token_operands(spec, rows, cols, x, operand, scale, range, counts);
      tile.outer = x_form.outer;
      if (x_form.outer != OuterScale::none) tile.scale = scale;
      if (tiny > 0) {
        const std::vector<float> lift = lift_tiny_rows(operand, rows, cols);
        if (!lift.empty()) {
          float* to =
              scale +
              aligned_bytes(std::max({std::int64_t{1}, rows, outer_scale_count(x_form, rows, cols)}) * 4) / 4;
          std::copy(lift.begin(), lift.end(), to);
          tile.lift = to;
        }
      }
    }
  }
  if (form.k_block > 0) {
    to_k_blocks(operand, rows, cols, form.k_block, blocked);
    tile.operand = blocked;
  }
  return tile;
}

LinearWeights::LinearWeights(const TensorSource& source, const std::string& name, std::int64_t out,
                             std::int64_t in, bool bias, const LinearForm& form)
    : form_(form), out_(out), in_(in) {
  const std::string weight = name + ".weight";
  const bool whole = needs_whole_matrix(form.weight);
  weight_form_ = form.type == OperandType::f32 ? OperandForm{} : weight_operand_form(form.weight);
  chunk_.resize(static_cast<std::size_t>(chunks()));
  const auto read_rows = [&](std::int64_t begin, std::int64_t end, float* to) {
    source.read(weight, begin, end, to);
    if (form_.round_to_bf16) round_array_to_bf16(to, (end - begin) * in_, to);
  };

  if (bias) {
    bias_.resize(static_cast<std::size_t>(out));
    source.read(name + ".bias", 0, 1, bias_.data());
    if (form.round_to_bf16) round_array_to_bf16(bias_.data(), out, bias_.data());
  }

  if (!whole && kChunkRows % piece_rows(form.weight, out, in) != 0)
    fail("weights", name, "their format cannot be quantized in pieces");
  TensorRange range;
  if (!whole && form.weight.needs_tensor_range()) {
    std::vector<TensorRange> part(static_cast<std::size_t>(chunks()));
    parallel_for(chunks(), [&](std::int64_t c, int) {
      std::vector<float> values(static_cast<std::size_t>(chunk_width(c) * in_));
      read_rows(c * kChunkRows, c * kChunkRows + chunk_width(c), values.data());
      part[static_cast<std::size_t>(c)] = measure_range(values);
    });
    for (const TensorRange& one : part) range.merge(one);
  }

  std::vector<float> all;
  if (whole) {
    all.resize(static_cast<std::size_t>(out_ * in_));
    parallel_for(chunks(), [&](std::int64_t c, int) {
      read_rows(c * kChunkRows, c * kChunkRows + chunk_width(c), all.data() + c * kChunkRows * in_);
    });
    quantize_dequantize(form.weight, out_, in_, all.data(), all.data(), nullptr, &counts_);
  }

  std::mutex counts_mutex;
  parallel_for(chunks(), [&](std::int64_t c, int) {
    QuantCounts counts;
    if (whole) {
      build_chunk(c, all.data() + c * kChunkRows * in_, nullptr, nullptr);
    } else {
      std::vector<float> values(static_cast<std::size_t>(chunk_width(c) * in_));
      read_rows(c * kChunkRows, c * kChunkRows + chunk_width(c), values.data());
      build_chunk(c, values.data(), form_.weight.needs_tensor_range() ? &range : nullptr, &counts);
    }
    const std::lock_guard lock(counts_mutex);
    counts_.merge(counts);
  });
}

std::int64_t LinearWeights::chunk_width(std::int64_t chunk) const {
  return std::min(kChunkRows, out_ - chunk * kChunkRows);
}

// values: the chunk's rows, may be overwritten; `counts` null: they are decoded already.
void LinearWeights::build_chunk(std::int64_t index, float* values, const TensorRange* range,
                                QuantCounts* counts) {
  Chunk& chunk = chunk_[static_cast<std::size_t>(index)];
  const std::int64_t rows = chunk_width(index), size = rows * in_;
  const bool quantized = counts != nullptr && !form_.weight.is_reference();
  if (form_.type == OperandType::f32) {
    if (quantized) quantize_dequantize(form_.weight, rows, in_, values, values, range, counts);
    chunk.blocks.emplace_back(OperandType::f32, values, rows, in_, kTileRows);
    return;
  }
  std::vector<std::uint16_t> operand(static_cast<std::size_t>(size));
  if (quantized) {
    std::int64_t tiny = 0;
    if (operand_form(form_.weight).outer == weight_form_.outer) {
      chunk.scale.resize(static_cast<std::size_t>(outer_scale_count(weight_form_, rows, in_)));
      tiny = quantize_operand_bf16(form_.weight, rows, in_, values, operand.data(), chunk.scale.data(), range,
                                   counts);
    } else {
      quantize_dequantize(form_.weight, rows, in_, values, values, range, counts);
      tiny = pack_bf16(values, size, operand.data());
    }
    if (tiny > 0) chunk.lift = lift_tiny_rows(operand.data(), rows, in_);
  } else {
    array_to_bf16(values, size, operand.data());
  }
  if (form_.k_block == 0) {
    chunk.blocks.emplace_back(OperandType::bf16, operand.data(), rows, in_, kTileRows);
    return;
  }
  std::vector<std::uint16_t> blocked(static_cast<std::size_t>(size));
  to_k_blocks(operand.data(), rows, in_, form_.k_block, blocked.data());
  const std::uint16_t* from = blocked.data();
  for (std::int64_t begin = 0; begin < in_; begin += form_.k_block) {
    const std::int64_t length = std::min(form_.k_block, in_ - begin);
    chunk.blocks.emplace_back(OperandType::bf16, from, rows, length, kTileRows);
    from += rows * length;
  }
}

std::int64_t LinearWeights::bytes() const {
  auto total = static_cast<std::int64_t>(bias_.size() * sizeof(float));
  for (const Chunk& chunk : chunk_) {
    for (const PackedMatrix& block : chunk.blocks) total += block.bytes();
    total += static_cast<std::int64_t>((chunk.scale.size() + chunk.lift.size()) * sizeof(float));
  }
  return total;
}

void LinearWeights::multiply(std::int64_t index, const ActivationTile& tile, float* y, std::int64_t y_stride,
                             float* partial) const {
  const Chunk& chunk = chunk_[static_cast<std::size_t>(index)];
  const std::int64_t cols = chunk_width(index);
  OuterScaling scaling;
  const float* product = y;
  std::int64_t product_stride = y_stride;
  if (form_.k_block == 0) {
    float* to = y_stride == cols ? y : partial;  // products are contiguous
    chunk.blocks[0].multiply(tile.operand, tile.rows, to);
    product = to;
    product_stride = cols;
    if (tile.scale) {
      scaling.row = tile.scale;
      scaling.row_count = tile.outer == OuterScale::tensor ? 1 : tile.rows;
    }
    if (!chunk.scale.empty()) {
      scaling.col = chunk.scale.data();
      scaling.col_count = static_cast<std::int64_t>(chunk.scale.size());
    }
  } else {
    for (std::int64_t r = 0; r < tile.rows; ++r) std::fill(y + r * y_stride, y + r * y_stride + cols, 0.0f);
    const auto blocks = static_cast<std::int64_t>(chunk.blocks.size());
    const auto* x = static_cast<const std::uint16_t*>(tile.operand);
    for (std::int64_t b = 0; b < blocks; ++b) {
      const PackedMatrix& block = chunk.blocks[static_cast<std::size_t>(b)];
      block.multiply(x, tile.rows, partial);
      x += tile.rows * block.k();
      BlockScaling s;
      if (tile.scale) {
        s.row = tile.outer == OuterScale::row_group ? tile.scale + b : tile.scale;
        s.row_stride = tile.outer == OuterScale::row_group ? blocks : tile.outer == OuterScale::row ? 1 : 0;
      }
      if (!chunk.scale.empty()) {
        s.col = weight_form_.outer == OuterScale::tile ? chunk.scale.data() + b : chunk.scale.data();
        s.col_stride = weight_form_.outer == OuterScale::tile  ? blocks
                       : weight_form_.outer == OuterScale::row ? 1
                                                               : 0;
        s.col_tile = weight_form_.outer == OuterScale::tile  ? weight_form_.tile_rows
                     : weight_form_.outer == OuterScale::row ? 1
                                                             : cols;
      }
      add_scaled_block(partial, tile.rows, cols, s, y, y_stride);
    }
  }
  const float* bias = bias_.empty() ? nullptr : bias_.data() + index * kChunkRows;
  if (!tile.lift && chunk.lift.empty()) {
    scaling.bias = bias;
    apply_outer_scaling(product, product_stride, tile.rows, cols, y, y_stride, scaling);
    return;
  }
  apply_outer_scaling(product, product_stride, tile.rows, cols, y, y_stride, scaling);
  OuterScaling lift;
  lift.row = tile.lift;
  lift.row_count = tile.rows;
  if (!chunk.lift.empty()) {
    lift.col = chunk.lift.data();
    lift.col_count = cols;
  }
  lift.bias = bias;
  apply_outer_scaling(y, y_stride, tile.rows, cols, y, y_stride, lift);
}

std::int64_t linear_weights_bytes_bound(std::int64_t out, std::int64_t in, const LinearForm& form,
                                        int threads) {
  const std::int64_t chunks = (out + kChunkRows - 1) / kChunkRows;
  const std::int64_t rows = std::min(out, kChunkRows);
  std::int64_t total = chunks * packed_bytes_bound(form.type, rows, in);
  if (form.k_block > 0) {
    const std::int64_t blocks = (in + form.k_block - 1) / form.k_block;
    total = chunks * blocks * packed_bytes_bound(form.type, rows, form.k_block);
  }
  if (!form.weight.is_reference())
    total += outer_scale_count(weight_operand_form(form.weight), out, in) * 4 + out * 8;
  if (needs_whole_matrix(form.weight)) total += out * in * 4;
  // While it is built: values, operand and its k-block copy of each thread's chunk.
  total += std::min<std::int64_t>(threads, chunks) * rows * in * 12;
  return total;
}

}  // namespace quantmap
