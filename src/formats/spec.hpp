// What "quantized how" means, resolved: the value type that the grammar (src/scheme) produces from a SPEC
// such as `int4:g128:asym` and that every quantizer takes. The rule is part of the identity (product.md), so
// every option that changes a bit of the result is a field here, and two specs are equal iff all fields are.
#pragma once

#include <cstdint>
#include <string>

#include "formats/registry.hpp"

namespace quantmap {

// Where a quantizer is applied; the same words mean different axes there (product.md, Words).
enum class Role : std::uint8_t { weight, activation, kv };

// What shares a scale, on a row-major matrix [rows][cols]. `own`: the format's own blocks along a row (MX,
// NVFP4, NF4, GGUF), or no scale at all (bf16, fp16).
enum class Granularity : std::uint8_t { own, tensor, row, column, group, tile };

enum class IntegerRange : std::uint8_t { full, narrow };
enum class MxScaleRule : std::uint8_t { floor, ceil, rceil, even };
enum class ScaleType : std::uint8_t { f32, f16, bf16 };

// How a scale is found: from the very values (weights, per-row activations); `dynamic`: over the window, for
// tensor scales; `unit`: 1.0 (a KV cache whose checkpoint brings no scales).
enum class ScaleSource : std::uint8_t { values, dynamic, unit };

// How codes are chosen: `rtn`, the nearest; `mse`, the nearest under the scale of a clipped range that leaves
// the least error (formats.md, section 9).
enum class Method : std::uint8_t { rtn, mse };

struct QuantSpec {
  const Format* format = nullptr;  // never null in a parsed spec; points into the registry
  Granularity granularity = Granularity::own;
  std::int32_t group = 0;                     // granularity group: values along the row that share a scale
  std::int32_t tile_rows = 0, tile_cols = 0;  // granularity tile
  bool asymmetric = false;                    // integers: with a zero point
  IntegerRange range = IntegerRange::full;
  MxScaleRule rule = MxScaleRule::floor;
  ScaleType scale = ScaleType::f32;
  ScaleSource source = ScaleSource::values;
  bool per_head = false;       // KV per-token-head rule: s = max(amax/top, 1e-6), x*fl(1/s) (formats.md, 7)
  bool nested = false;         // nf4, bnb_fp4: double quantization of the block maxima
  bool no_global = false;      // nvfp4: without the tensor scale
  bool four_over_six = false;  // nvfp4: the 4/6 choice of block scale, squared error, M = 256
  Method method = Method::rtn;

  bool operator==(const QuantSpec&) const = default;
  // Nothing is rounded: `bf16` (the checkpoint's own values).
  bool is_reference() const;
  // A scale spans the whole tensor (an activation's or cache's whole window): per-row results then depend on
  // all rows, and quantizers take a TensorRange.
  bool needs_tensor_range() const;
};

// The full spelling (product.md: always printed and stored), for the given role, as the grammar reads it
// back: every default that the identity depends on is spelled out, e.g. `int4:g128:full:sbf16`,
// `mxfp4:floor`, `nvfp4`, `fp8_e4m3:tensor`, `int8:token:narrow:sf32`.
std::string spelling(const QuantSpec& spec, Role role);

// Storage for a matrix [rows][cols], in bits, scales and zero points and padding of the last block counted.
std::int64_t storage_bits(const QuantSpec& spec, std::int64_t rows, std::int64_t cols);

}  // namespace quantmap
