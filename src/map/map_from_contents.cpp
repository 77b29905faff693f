#include "map/map_from_contents.hpp"

#include <algorithm>
#include <charconv>

#include "checkpoint/gguf_model.hpp"
#include "core/error.hpp"
#include "scheme/scheme.hpp"
#include "scheme/text.hpp"

namespace quantmap {
namespace {

bool holds(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }

// The number behind `layers.` (HF) or `blk.` (GGUF); -1: outside the decoder layers.
std::int64_t layer_of(std::string_view name) {
  for (const std::string_view mark : {std::string_view("layers."), std::string_view("blk.")}) {
    const std::size_t at = name.find(mark);
    if (at == name.npos) continue;
    std::int64_t layer = -1;
    const char* begin = name.data() + at + mark.size();
    if (std::from_chars(begin, name.data() + name.size(), layer).ec == std::errc() && layer >= 0)
      return layer;
  }
  return -1;
}

// The registry's format of this name, where it has one and takes no words; GGUF types have its ids in
// capitals.
std::optional<QuantSpec> spec_of(const ModuleContents& module) {
  if (module.storage == Storage::plain) return std::nullopt;
  try {
    return parse_quant_spec(lower_case(module.format), Role::weight);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

Part part_of(std::string_view module) {
  if (holds(module, "embed_tokens") || module == "token_embd" || holds(module, ".wte"))
    return Part::embeddings;
  if (module.ends_with("lm_head") || module == "output") return Part::lm_head;
  if (holds(module, "norm")) return Part::norms;
  if (layer_of(module) < 0) return Part::other;
  if (module.ends_with(".gate") || holds(module, "router") || holds(module, "ffn_gate_inp"))
    return Part::router;
  if (holds(module, "experts.") || module.ends_with("_exps")) return Part::experts;
  if (holds(module, "attn") || holds(module, "attention")) return Part::attention;
  if (holds(module, "mlp") || holds(module, "ffn") || holds(module, "feed_forward") ||
      holds(module, "block_sparse_moe"))
    return Part::mlp;
  return Part::other;
}

ModelMap map_from_contents(const Contents& contents, const std::string& source) {
  ModelMap map;
  map.source = source;
  bool head = false;
  std::int64_t counted = 0;
  for (const auto& [name, found] : contents.modules) {
    MapModule module;
    module.part = part_of(name);
    head = head || module.part == Part::lm_head;
    module.name = name;
    if (contents.gguf) {
      const std::string hf = hf_tensor_name(name + ".weight");
      if (hf != name + ".weight") module.name = hf.substr(0, hf.size() - std::string_view(".weight").size());
    }
    module.rows = found.matrix ? found.rows : 1;
    module.cols = found.matrix ? found.cols : found.parameters;
    const std::int64_t layer = layer_of(name);
    map.layers = std::max(map.layers, layer + 1);
    module.linear =
        found.matrix && (layer >= 0 || module.part == Part::lm_head) && module.part != Part::norms;
    if (module.part == Part::embeddings) map.hidden_size = module.cols;
    counted += module.values();
    map.modules.push_back(std::move(module));
  }
  if (contents.parameters > counted) {  // biases and the like
    MapModule rest;
    rest.name = "(biases)";
    rest.rows = 1;
    rest.cols = contents.parameters - counted;
    map.modules.push_back(std::move(rest));
  }
  map.tied_embeddings = !head;
  map.notes.emplace_back("sizes by the tensors of the files; experts, if any, are all counted as active");
  return map;
}

WeightBytes weight_bytes_of_files(const Contents& contents) {
  WeightBytes out;
  std::int64_t counted_values = 0, counted_bits = 0;
  out.tied = true;
  for (const auto& [name, module] : contents.modules) {
    const Part part = part_of(name);
    const std::int64_t bits = 8 * module.weight_bytes;
    PartBytes& sum = out.parts[static_cast<std::size_t>(part)];
    sum.values += module.parameters;
    sum.bits += bits;
    counted_values += module.parameters;
    counted_bits += bits;
    if (module.storage != Storage::plain) {
      out.quantized_values += module.parameters;
      out.quantized_bits += bits;
      if (module.bits > 0) sum.overhead += bits - module.bits * module.parameters;
    }
    if (part == Part::lm_head) out.tied = false;
    if (part == Part::embeddings) {
      out.embedding_bits += bits;
    } else if (!module.matrix || part == Part::norms) {
      out.vector_bits += bits;
    } else {
      LinearClass linears;
      linears.stored.weight = spec_of(module);
      linears.head = part == Part::lm_head;
      linears.values = linears.active_values = module.parameters;
      linears.bits = bits;
      out.linears.push_back(linears);
    }
  }
  // Biases, and tensors of no module.
  PartBytes& rest = out.parts[static_cast<std::size_t>(Part::other)];
  rest.values += contents.parameters - counted_values;
  rest.bits += 8 * contents.bytes - counted_bits;
  out.vector_bits += 8 * contents.bytes - counted_bits;
  return out;
}

}  // namespace quantmap
