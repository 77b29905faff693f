#include "capture/config_json.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace quantmap {
namespace {

using Json = nlohmann::json;

constexpr std::array<const char*, 4> kRopeKinds = {"standard", "linear", "llama3", "yarn"};

}  // namespace

// The bindings name every field, so that a new one does not compile until it is written here.
std::string write_config_json(const ModelConfig& config) {
  const auto& [model_type, source, vocab_size, hidden_size, intermediate_size, layers, heads, kv_heads,
               head_dim, max_position, rms_norm_eps, qk_norm, q_bias, k_bias, v_bias, o_bias, mlp_bias,
               tied_embeddings, rope, window] = config;
  const auto& [kind, theta, factor, low_freq_factor, high_freq_factor, original_max_position, beta_fast,
               beta_slow, attention_factor, truncate, frequency_factors] = rope;
  return Json{{"model_type", model_type},
              {"source", source},
              {"vocab_size", vocab_size},
              {"hidden_size", hidden_size},
              {"intermediate_size", intermediate_size},
              {"layers", layers},
              {"heads", heads},
              {"kv_heads", kv_heads},
              {"head_dim", head_dim},
              {"max_position", max_position},
              {"rms_norm_eps", rms_norm_eps},
              {"qk_norm", qk_norm},
              {"q_bias", q_bias},
              {"k_bias", k_bias},
              {"v_bias", v_bias},
              {"o_bias", o_bias},
              {"mlp_bias", mlp_bias},
              {"tied_embeddings", tied_embeddings},
              {"rope",
               {{"kind", kRopeKinds.at(static_cast<std::size_t>(kind))},
                {"theta", theta},
                {"factor", factor},
                {"low_freq_factor", low_freq_factor},
                {"high_freq_factor", high_freq_factor},
                {"original_max_position", original_max_position},
                {"beta_fast", beta_fast},
                {"beta_slow", beta_slow},
                {"attention_factor", attention_factor},
                {"truncate", truncate},
                {"frequency_factors", frequency_factors}}},
              {"window", window}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

ModelConfig parse_config_json(const std::string& text, const std::string& source) {
  ModelConfig c;
  try {
    const Json json = Json::parse(text);
    json.at("model_type").get_to(c.model_type);
    json.at("source").get_to(c.source);
    json.at("vocab_size").get_to(c.vocab_size);
    json.at("hidden_size").get_to(c.hidden_size);
    json.at("intermediate_size").get_to(c.intermediate_size);
    json.at("layers").get_to(c.layers);
    json.at("heads").get_to(c.heads);
    json.at("kv_heads").get_to(c.kv_heads);
    json.at("head_dim").get_to(c.head_dim);
    json.at("max_position").get_to(c.max_position);
    json.at("rms_norm_eps").get_to(c.rms_norm_eps);
    json.at("qk_norm").get_to(c.qk_norm);
    json.at("q_bias").get_to(c.q_bias);
    json.at("k_bias").get_to(c.k_bias);
    json.at("v_bias").get_to(c.v_bias);
    json.at("o_bias").get_to(c.o_bias);
    json.at("mlp_bias").get_to(c.mlp_bias);
    json.at("tied_embeddings").get_to(c.tied_embeddings);
    json.at("window").get_to(c.window);
    const Json& rope = json.at("rope");
    const auto kind = rope.at("kind").get<std::string>();
    std::size_t index = 0;
    while (index < kRopeKinds.size() && kind != kRopeKinds[index]) ++index;
    if (index == kRopeKinds.size()) fail_input("bad capture", source, "config: rope of kind " + quoted(kind));
    c.rope.kind = static_cast<RopeKind>(index);
    rope.at("theta").get_to(c.rope.theta);
    rope.at("factor").get_to(c.rope.factor);
    rope.at("low_freq_factor").get_to(c.rope.low_freq_factor);
    rope.at("high_freq_factor").get_to(c.rope.high_freq_factor);
    rope.at("original_max_position").get_to(c.rope.original_max_position);
    rope.at("beta_fast").get_to(c.rope.beta_fast);
    rope.at("beta_slow").get_to(c.rope.beta_slow);
    rope.at("attention_factor").get_to(c.rope.attention_factor);
    rope.at("truncate").get_to(c.rope.truncate);
    rope.at("frequency_factors").get_to(c.rope.frequency_factors);
  } catch (const Json::exception& error) {
    fail_input("bad capture", source, std::string("config: ").append(error.what()));
  }
  for (const std::int64_t size : {c.vocab_size, c.hidden_size, c.intermediate_size, std::int64_t{c.layers},
                                  std::int64_t{c.heads}, std::int64_t{c.kv_heads}, std::int64_t{c.head_dim}})
    if (size < 1) fail_input("bad capture", source, "config: a size that is not positive");
  if (c.heads % c.kv_heads != 0 || c.window.size() != static_cast<std::size_t>(c.layers))
    fail_input("bad capture", source, "config: its sizes contradict each other");
  return c;
}

}  // namespace quantmap
