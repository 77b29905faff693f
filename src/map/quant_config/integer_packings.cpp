// GPTQ (AutoGPTQ, GPTQModel) and AWQ (AutoAWQ): integer weights in groups, nothing else quantized.
#include <fmt/format.h>

#include "map/quant_config/readers.hpp"

namespace quantmap {
namespace {

// Both keep FP16 scales and a zero point for each group, symmetric or not.
NumberChoice packed_integers(std::int64_t bits, std::int64_t group, std::optional<bool> symmetric,
                             const std::string& source) {
  const std::string words =
      group > 0 ? fmt::format("g{}:asym:sf16", group) : std::string("channel:asym:sf16");
  NumberChoice choice =
      make_choice(fmt::format("int{}", bits), static_cast<int>(bits), words, Role::weight, source);
  choice.granularity = group > 0 ? "group" : "channel";
  choice.group_size = group > 0 ? group : 0;
  choice.symmetric = symmetric;
  return choice;
}

}  // namespace

void read_gptq(const QuantFields& fields, QuantConfig& out) {
  const std::int64_t bits = fields.integer("bits").value_or(0);
  if (bits < 2 || bits > 8) {
    fields.warn(fmt::format("{} is {}, not 2 to 8", fields.place("bits"), bits));
    return;
  }
  QuantGroup group;
  group.weights =
      packed_integers(bits, fields.integer("group_size").value_or(-1), fields.boolean("sym"), fields.place());
  group.index_per_input = true;  // g_idx is stored with or without desc_act
  out.groups.push_back(std::move(group));
  const std::string version = fields.string("checkpoint_format").value_or("");
  if (version.empty())
    out.notes.push_back("checkpoint_format is absent: v1, which stores zero points minus 1");
  else
    out.notes.push_back(fmt::format("checkpoint_format {}: zero points are stored {}", version,
                                    version == "gptq_v2" ? "as they are" : "minus 1"));
  if (fields.boolean("desc_act").value_or(false))
    out.notes.push_back("desc_act: input channels are in the order of their activations (act-order)");
  if (const QuantJson* head = fields.find("lm_head"); head && head->is_boolean() && head->get<bool>())
    out.head_by_default = true;
  if (const QuantJson* dynamic = fields.find("dynamic"); dynamic && dynamic->is_object())
    for (const auto& [rule, change] : dynamic->items()) {
      if (rule.starts_with("-:"))
        out.ignored.push_back(rule.substr(2));
      else
        fields.warn(fmt::format("{}: the rule {} is listed, and not applied to the sizes",
                                fields.place("dynamic"), rule));
    }
}

void read_awq(const QuantFields& fields, QuantConfig& out) {
  const auto bits = fields.integer("bits") ? fields.integer("bits") : fields.integer("w_bit");
  const auto group =
      fields.integer("group_size") ? fields.integer("group_size") : fields.integer("q_group_size");
  if (!bits || *bits < 2 || *bits > 8) {
    fields.warn(fmt::format("{} is missing or not 2 to 8", fields.place("bits")));
    return;
  }
  const auto zero_point = fields.boolean("zero_point");
  QuantGroup one;
  one.weights = packed_integers(*bits, group.value_or(128),
                                zero_point ? std::optional(!*zero_point) : std::nullopt, fields.place());
  out.groups.push_back(std::move(one));
  out.ignored = fields.strings("modules_to_not_convert");
  if (const auto version = fields.string("version")) out.notes.push_back("AWQ packing version " + *version);
}

}  // namespace quantmap
