// GPUs and serving engines as data (src/map/data/*.json, embedded; each row names its source): memory,
// bandwidth and dense rates of a GPU; which engine multiplies which formats natively on which generation, and
// what it falls back to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "map/weight_bytes.hpp"

namespace quantmap {

// What a product's operands are, for its rate.
enum class Operands : std::uint8_t { bf16, fp8, int8, fp4 };
inline constexpr std::size_t kOperands = 4;

struct Machine {
  std::string name;
  std::vector<std::string> also;          // other names it goes by
  std::string generation;                 // `Hopper`; empty for a machine given by figures
  int sm = 0;                             // compute capability × 10; 0 for a machine given by figures
  double memory = 0;                      // bytes
  double bandwidth = 0;                   // bytes a second; 0: not given
  std::array<double, kOperands> rates{};  // multiply-adds count two, a second; 0: none
  std::string source;

  double rate(Operands operands) const { return rates[static_cast<std::size_t>(operands)]; }
};
std::span<const Machine> machines();
const Machine* find_machine(std::string_view name);  // in either case; null if there is none
std::string machine_names();

enum class Runs : std::uint8_t { native, weight_only, no, unknown };
struct EngineRow {
  std::string engine, weights, activations;  // format classes: `int4`, `fp8`, `nvfp4`, `gguf`, …
  int sm_first = 0, sm_last = 0;
  Runs runs = Runs::unknown;
  std::string falls_back_to;  // `W4A16`
  Operands operands = Operands::bf16;
  std::string source;
};
std::span<const EngineRow> engine_rows();
std::vector<std::string> engine_names();

// `int4`, `fp8`, `nvfp4`, `mxfp8`, `nf4`, `gguf`, `bf16`: what engines tell apart.
std::string format_class(const std::optional<QuantSpec>& spec);

// How an engine multiplies a Linear on a machine; null: the data say nothing about it.
const EngineRow* find_engine_row(std::string_view engine, const StoredLinear& linear, int sm);

}  // namespace quantmap
