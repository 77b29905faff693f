#include "model/architecture.hpp"

namespace quantmap {

LinearShape linear_shape(const ModelConfig& c, LinearId id) {
  switch (id) {
    case LinearId::q:
      return {query_width(c), c.hidden_size, c.q_bias};
    case LinearId::k:
      return {kv_width(c), c.hidden_size, c.k_bias};
    case LinearId::v:
      return {kv_width(c), c.hidden_size, c.v_bias};
    case LinearId::o:
      return {c.hidden_size, query_width(c), c.o_bias};
    case LinearId::gate:
    case LinearId::up:
      return {c.intermediate_size, c.hidden_size, c.mlp_bias};
    case LinearId::down:
      break;
  }
  return {c.hidden_size, c.intermediate_size, c.mlp_bias};
}

std::string layer_name(int layer) { return "model.layers." + std::to_string(layer); }

std::string attention_name(int layer) { return layer_name(layer) + ".self_attn"; }

std::string linear_name(int layer, LinearId id) {
  static constexpr const char* kNames[] = {".self_attn.q_proj", ".self_attn.k_proj", ".self_attn.v_proj",
                                           ".self_attn.o_proj", ".mlp.gate_proj",    ".mlp.up_proj",
                                           ".mlp.down_proj"};
  return layer_name(layer) + kNames[static_cast<int>(id)];
}

}  // namespace quantmap
