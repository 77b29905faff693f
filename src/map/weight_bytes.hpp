// What a model's weights take when each module is stored as a scheme, or the checkpoint's own configuration,
// says: by part, scales and zero points and padding counted (formats/spec.hpp, storage_bits).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/spec.hpp"
#include "map/model_map.hpp"
#include "scheme/scheme.hpp"

namespace quantmap {

// How one Linear is stored and multiplied.
struct StoredLinear {
  std::optional<QuantSpec> weight;      // none: not quantized, 16 bits a value
  std::optional<QuantSpec> activation;  // none: 16 bits
  bool index_per_input = false;         // GPTQ's `g_idx`: 32 bits for each input channel

  bool operator==(const StoredLinear&) const = default;
};

// Says how the Linear of a name is stored. Experts of a layer differ by their number alone; where
// `numbers_matter` is false, two names that differ in digits (of equally many) get the same answer, and one
// stands for all.
struct WeightChoice {
  std::function<StoredLinear(const MapModule& module, const std::string& name)> of;
  bool numbers_matter = true;
};
WeightChoice choice_of(const Scheme& scheme);
WeightChoice unquantized_choice();

struct PartBytes {
  std::int64_t values = 0;    // parameters, biases included
  std::int64_t bits = 0;      // all that is stored
  std::int64_t overhead = 0;  // of `bits`: scales, zero points, indices, padding
};

// Linears that are stored and multiplied alike: what the roofline needs.
struct LinearClass {
  StoredLinear stored;
  bool expert = false;
  std::int64_t values = 0, bits = 0;  // of all of them
  std::int64_t active_values = 0;     // that one token goes through
  bool head = false;                  // the LM head (prefill multiplies one row by it)
};

struct WeightBytes {
  std::array<PartBytes, kParts> parts{};
  std::int64_t quantized_values = 0, quantized_bits = 0;
  std::vector<LinearClass> linears;
  std::int64_t vector_bits = 0;     // norms, biases, router corrections: read for every token
  std::int64_t embedding_bits = 0;  // the table; of a tied head too, which every token reads whole
  bool tied = false;

  const PartBytes& part(Part p) const { return parts[static_cast<std::size_t>(p)]; }
  std::int64_t parameters() const;
  std::int64_t bits() const;
  std::int64_t bytes() const;  // rounded up
  double bpw_model() const;
  std::optional<double> bpw_quantized() const;  // none: nothing is quantized
};
WeightBytes weight_bytes(const ModelMap& map, const WeightChoice& choice);

}  // namespace quantmap
