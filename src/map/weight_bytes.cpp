#include "map/weight_bytes.hpp"

#include <algorithm>

namespace quantmap {
namespace {

constexpr std::int64_t kUnquantizedBits = 16;
constexpr std::int64_t kIndexBits = 32;

std::int64_t stored_bits(const StoredLinear& stored, const MapModule& module) {
  if (!stored.weight) return module.values() * kUnquantizedBits;
  return storage_bits(*stored.weight, module.rows, module.cols) +
         (stored.index_per_input ? module.cols * kIndexBits : 0);
}

class Counter {
 public:
  explicit Counter(WeightBytes& out) : out_(out) {}

  // `count` modules alike, `active` of which a token uses (a fraction of one class of experts).
  void add(const MapModule& module, const StoredLinear& stored, std::int64_t count, double active) {
    const std::int64_t own = stored_bits(stored, module);
    PartBytes& part = out_.parts[static_cast<std::size_t>(module.part)];
    const std::int64_t bias = module.bias * count;
    const std::int64_t values = module.values() * count;
    part.values += values + bias;
    part.bits += own * count + bias * kUnquantizedBits;
    out_.vector_bits += bias * kUnquantizedBits;
    if (stored.weight) {
      out_.quantized_values += values;
      out_.quantized_bits += own * count;
      part.overhead += own * count - values * stored.weight->format->bits;
    }
    if (module.part == Part::embeddings) {
      out_.embedding_bits += own * count;
    } else if (module.rows == 1) {
      out_.vector_bits += own * count;
    } else {
      LinearClass& linears = class_of(module, stored);
      linears.values += values;
      linears.bits += own * count;
      linears.active_values += static_cast<std::int64_t>(static_cast<double>(module.values()) * active);
    }
  }

 private:
  LinearClass& class_of(const MapModule& module, const StoredLinear& stored) {
    const bool expert = module.part == Part::experts, head = module.part == Part::lm_head;
    for (LinearClass& one : out_.linears)
      if (one.expert == expert && one.head == head && one.stored == stored) return one;
    out_.linears.push_back({.stored = stored, .expert = expert, .head = head});
    return out_.linears.back();
  }

  WeightBytes& out_;
};

}  // namespace

WeightChoice unquantized_choice() {
  return {[](const MapModule&, const std::string&) { return StoredLinear{}; }, false};
}

WeightChoice choice_of(const Scheme& scheme) {
  // Only patterns can tell the experts of a layer apart.
  const std::string& text = scheme.spelling();
  const bool patterns = text.starts_with('@') || text.find("ignore=") != std::string::npos ||
                        text.find("include=") != std::string::npos;
  return {[scheme](const MapModule&, const std::string& name) {
            const LinearChoice choice = scheme.linear(name);
            StoredLinear stored;
            if (!choice.weight.is_reference()) stored.weight = choice.weight;
            if (!choice.activation.is_reference()) stored.activation = choice.activation;
            return stored;
          },
          patterns};
}

std::int64_t WeightBytes::parameters() const {
  std::int64_t sum = 0;
  for (const PartBytes& part : parts) sum += part.values;
  return sum;
}

std::int64_t WeightBytes::bits() const {
  std::int64_t sum = 0;
  for (const PartBytes& part : parts) sum += part.bits;
  return sum;
}

std::int64_t WeightBytes::bytes() const { return (bits() + 7) / 8; }

double WeightBytes::bpw_model() const {
  return static_cast<double>(bits()) / static_cast<double>(std::max<std::int64_t>(1, parameters()));
}

std::optional<double> WeightBytes::bpw_quantized() const {
  if (quantized_values == 0) return std::nullopt;
  return static_cast<double>(quantized_bits) / static_cast<double>(quantized_values);
}

WeightBytes weight_bytes(const ModelMap& map, const WeightChoice& choice) {
  WeightBytes out;
  out.tied = map.tied_embeddings;
  Counter counter(out);
  for (const MapModule& module : map.modules) {
    const auto active = static_cast<double>(module.active);
    if (!module.linear) {
      counter.add(module, {}, module.count, active);
    } else if (!module.numbered) {
      counter.add(module, choice.of(module, module.name), module.count, active);
    } else {
      // One name stands for its run of numbers: each number alone, or all with as many digits.
      const double share = active / static_cast<double>(module.count);
      for (std::int64_t first = 0, digits = 10; first < module.count;) {
        const std::int64_t end = std::min(module.count, choice.numbers_matter ? first + 1 : digits);
        const std::int64_t run = end - first;
        counter.add(module, choice.of(module, module.module_name(first)), run,
                    share * static_cast<double>(run));
        first = end;
        digits *= 10;
      }
    }
  }
  return out;
}

}  // namespace quantmap
