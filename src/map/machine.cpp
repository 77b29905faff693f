#include "map/machine.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "embedded/map_data.hpp"
#include "scheme/text.hpp"

namespace quantmap {
namespace {

constexpr std::array<std::string_view, kOperands> kOperandNames{"bf16", "fp8", "int8", "fp4"};

std::string_view embedded_file(std::string_view name) {
  for (const auto& [stem, text] : embedded::map_data)
    if (stem == name) return text;
  throw std::logic_error("no embedded file");
}

std::vector<Machine> read_machines() {
  std::vector<Machine> out;
  for (const auto& row : nlohmann::json::parse(embedded_file("gpus"))) {
    Machine machine;
    machine.name = row.at("name");
    machine.also = row.at("also").get<std::vector<std::string>>();
    machine.generation = row.at("generation");
    machine.sm = row.at("sm");
    machine.memory = row.at("memory_bytes");
    machine.bandwidth = row.at("bandwidth");
    for (std::size_t i = 0; i < kOperands; ++i)
      machine.rates[i] = row.at("tflops").value(std::string(kOperandNames[i]), 0.0) * 1e12;
    machine.source = row.at("source");
    out.push_back(std::move(machine));
  }
  return out;
}

Runs parse_runs(const std::string& text) {
  if (text == "native") return Runs::native;
  if (text == "weight-only") return Runs::weight_only;
  if (text == "no") return Runs::no;
  throw std::logic_error("engines.json: runs");
}

std::vector<EngineRow> read_engine_rows() {
  std::vector<EngineRow> out;
  for (const auto& row : nlohmann::json::parse(embedded_file("engines"))) {
    EngineRow engine;
    engine.engine = row.at("engine");
    engine.weights = row.at("weights");
    engine.activations = row.at("activations");
    engine.sm_first = row.at("sm").at(0);
    engine.sm_last = row.at("sm").at(1);
    engine.runs = parse_runs(row.at("runs"));
    engine.falls_back_to = row.value("as", std::string());
    const std::string operands = row.value("operands", std::string("bf16"));
    const auto known = std::find(kOperandNames.begin(), kOperandNames.end(), operands);
    if (known == kOperandNames.end()) throw std::logic_error("engines.json: operands");
    engine.operands = static_cast<Operands>(known - kOperandNames.begin());
    engine.source = row.at("source");
    out.push_back(std::move(engine));
  }
  return out;
}

}  // namespace

std::span<const Machine> machines() {
  static const std::vector<Machine> kMachines = read_machines();
  return kMachines;
}

const Machine* find_machine(std::string_view name) {
  for (const Machine& machine : machines()) {
    if (same_ignoring_case(machine.name, name)) return &machine;
    for (const std::string& also : machine.also)
      if (same_ignoring_case(also, name)) return &machine;
  }
  return nullptr;
}

std::string machine_names() {
  std::string names;
  for (const Machine& machine : machines()) names.append(names.empty() ? "" : ", ").append(machine.name);
  return names;
}

std::span<const EngineRow> engine_rows() {
  static const std::vector<EngineRow> kRows = read_engine_rows();
  return kRows;
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const EngineRow& row : engine_rows())
    if (std::find(names.begin(), names.end(), row.engine) == names.end()) names.push_back(row.engine);
  return names;
}

std::string format_class(const std::optional<QuantSpec>& spec) {
  if (!spec) return "bf16";
  const std::string_view id = spec->format->id;
  switch (spec->format->kind) {
    case FormatKind::cast:
      return "bf16";
    case FormatKind::minifloat:
      return "fp8";
    case FormatKind::mx:
      return std::string(id.substr(0, id.find('_')));
    case FormatKind::ggml:
      return "gguf";
    default:
      return std::string(id);
  }
}

const EngineRow* find_engine_row(std::string_view engine, const StoredLinear& linear, int sm) {
  const std::string weights = format_class(linear.weight), activations = format_class(linear.activation);
  for (const EngineRow& row : engine_rows())
    if (same_ignoring_case(row.engine, engine) && row.weights == weights && row.activations == activations &&
        row.sm_first <= sm && sm <= row.sm_last)
      return &row;
  return nullptr;
}

}  // namespace quantmap
