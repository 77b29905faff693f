#include "checkpoint/rope_config.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoint/config_limits.hpp"

namespace quantmap {
namespace {

double factor_of(const JsonFields& rope) {
  const auto factor = rope.number("factor", 0.0);
  if (!factor) rope.wrong("factor", "a number above 0");
  return *factor;
}

double original_length(const JsonFields& top, const JsonFields& rope, std::int64_t max_position) {
  constexpr const char* kKey = "original_max_position_embeddings";
  if (const auto value = top.integer(kKey, 1, kMaxPositions))
    return static_cast<double>(*value);  // wins there too
  return static_cast<double>(rope.integer(kKey, 1, kMaxPositions).value_or(max_position));
}

void read_llama3(const JsonFields& top, const JsonFields& rope, std::int64_t max_position, RopeConfig& out) {
  out.kind = RopeKind::llama3;
  out.factor = factor_of(rope);
  const auto low = rope.number("low_freq_factor", 0.0);
  const auto high = rope.number("high_freq_factor", 0.0);
  if (!low) rope.wrong("low_freq_factor", "a number above 0");
  if (!high) rope.wrong("high_freq_factor", "a number above 0");
  if (!(*high > *low)) rope.wrong("high_freq_factor", "a number above low_freq_factor");
  out.low_freq_factor = *low;
  out.high_freq_factor = *high;
  out.original_max_position = original_length(top, rope, max_position);
}

void read_yarn(const JsonFields& top, const JsonFields& rope, std::int64_t max_position, RopeConfig& out) {
  out.kind = RopeKind::yarn;
  out.original_max_position = original_length(top, rope, max_position);
  // A factor that is null is the ratio of the lengths; one that is absent is an error there too.
  const bool derived = rope.mentions("factor") && !rope.has("factor");
  out.factor = derived ? static_cast<double>(max_position) / out.original_max_position : factor_of(rope);
  // `or`: a value of 0 counts as absent.
  const auto given = [&](const char* key) {
    const double value = rope.number(key).value_or(0.0);
    if (value < 0.0) rope.wrong(key, "a number above 0");
    return value == 0.0 ? std::optional<double>() : value;
  };
  out.beta_fast = given("beta_fast").value_or(32.0);
  out.beta_slow = given("beta_slow").value_or(1.0);
  if (out.beta_fast < out.beta_slow) rope.wrong("beta_fast", "at least beta_slow");
  const auto mscale = given("mscale");
  const auto mscale_all_dim = given("mscale_all_dim");
  if (const auto factor = rope.number("attention_factor", 0.0)) {
    out.attention_factor = *factor;
  } else if (mscale && mscale_all_dim) {
    out.attention_factor = yarn_mscale(out.factor, *mscale) / yarn_mscale(out.factor, *mscale_all_dim);
  } else {
    out.attention_factor = yarn_mscale(out.factor);
  }
  out.truncate = rope.boolean("truncate").value_or(!rope.mentions("truncate"));  // null is false there
}

void refuse_partial(const JsonFields& fields) {
  if (const auto factor = fields.number("partial_rotary_factor"); factor && *factor != 1.0)
    fields.wrong("partial_rotary_factor", "1, rotation of whole heads");
}

}  // namespace

double yarn_mscale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

RopeConfig parse_rope(const nlohmann::json& config, const std::string& source, std::int64_t max_position) {
  const JsonFields top(config, source);
  // rope_scaling is the older name; transformers takes it where both are there, unless it is empty.
  std::string where = "rope_scaling";
  if (!top.has(where) || top.at(where).empty()) where = "rope_parameters";
  static const nlohmann::json kNone = nlohmann::json::object();
  const nlohmann::json& parameters = top.has(where) ? top.at(where) : kNone;
  if (!parameters.is_object()) top.wrong(where, "an object");
  const JsonFields rope(parameters, source, where + ".");

  for (const auto& [key, value] : parameters.items())
    if (value.is_object()) rope.wrong(key, "one rotary embedding for all layers");
  refuse_partial(top);
  refuse_partial(rope);

  RopeConfig out;
  auto theta = rope.number("rope_theta", 1.0);
  if (!theta) theta = top.number("rope_theta", 1.0);
  if (theta) out.theta = *theta;

  const std::string key = rope.has("rope_type") ? "rope_type" : "type";
  const std::string kind = rope.string(key).value_or("default");
  if (kind == "linear") {
    out.kind = RopeKind::linear;
    out.factor = factor_of(rope);
  } else if (kind == "llama3") {
    read_llama3(top, rope, max_position, out);
  } else if (kind == "yarn") {
    read_yarn(top, rope, max_position, out);
  } else if (kind != "default") {
    rope.wrong(key, "default, linear, llama3 or yarn");
  }
  return out;
}

}  // namespace quantmap
