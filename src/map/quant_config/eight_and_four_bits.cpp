// The dialects of transformers' own: FP8 (per tensor or in blocks, DeepSeek's), FBGEMM FP8, bitsandbytes,
// MXFP4 as gpt-oss has it.
#include <fmt/format.h>

#include "map/quant_config/readers.hpp"

namespace quantmap {

void read_fp8(const QuantFields& fields, QuantConfig& out) {
  out.ignored = fields.strings("modules_to_not_convert");
  if (out.ignored.empty()) out.ignored = fields.strings("ignored_layers");
  const std::string fmt_key = fields.string("fmt").value_or("e4m3");
  const std::string format = fmt_key.find("e5m2") != std::string::npos ? "fp8_e5m2" : "fp8_e4m3";
  const std::string scheme = fields.string("activation_scheme").value_or("dynamic");
  if (scheme != "dynamic" && scheme != "static")
    fields.warn(
        fmt::format("{} is \"{}\", not dynamic or static", fields.place("activation_scheme"), scheme));
  std::int64_t rows = 0, cols = 0;
  if (const QuantJson* block = fields.find("weight_block_size")) {
    if (block->is_array() && block->size() == 2 && (*block)[0].is_number_integer() &&
        (*block)[1].is_number_integer() && (*block)[0] > 0 && (*block)[1] > 0) {
      rows = (*block)[0];
      cols = (*block)[1];
    } else {
      fields.warn(fields.place("weight_block_size") +
                  " is not two numbers; the scales are taken for a tensor's");
    }
  }
  QuantGroup group;
  group.weights = make_choice(format, 8, rows > 0 ? fmt::format("b{}x{}", rows, cols) : "tensor",
                              Role::weight, fields.place());
  group.weights->granularity = rows > 0 ? "block" : "tensor";
  group.weights->block_rows = rows;
  group.weights->block_cols = cols;
  group.activations = make_choice(format, 8, cols > 0 ? fmt::format("g{}", cols) : "tensor:dynamic",
                                  Role::activation, fields.place("activation_scheme"));
  group.activations->granularity = cols > 0 ? "group" : "tensor";
  group.activations->group_size = cols;
  group.activations->dynamic = scheme == "static" ? "false" : "true";
  group.weights->symmetric = group.activations->symmetric = true;
  out.groups.push_back(std::move(group));
  if (const auto scale = fields.string("scale_fmt")) out.notes.push_back("scale_fmt " + *scale);
}

void read_fbgemm_fp8(const QuantFields& fields, QuantConfig& out) {
  out.ignored = fields.strings("modules_to_not_convert");
  QuantGroup group;
  group.weights = make_choice("fp8_e4m3", 8, "channel", Role::weight, fields.place());
  group.weights->granularity = "channel";
  group.activations = make_choice("fp8_e4m3", 8, "token", Role::activation, fields.place());
  group.activations->granularity = "token";
  group.activations->dynamic = "true";
  group.weights->symmetric = group.activations->symmetric = true;
  out.groups.push_back(std::move(group));
}

void read_bitsandbytes(const QuantFields& fields, QuantConfig& out) {
  out.ignored = fields.strings("llm_int8_skip_modules");
  const bool four = fields.boolean("load_in_4bit").value_or(fields.boolean("_load_in_4bit").value_or(false));
  const bool eight = fields.boolean("load_in_8bit").value_or(fields.boolean("_load_in_8bit").value_or(false));
  if (four == eight) {
    fields.warn(
        fmt::format("{}: {}", fields.place(),
                    four ? "both load_in_4bit and load_in_8bit" : "neither load_in_4bit nor load_in_8bit"));
    if (!four) return;
  }
  QuantGroup group;
  if (four) {
    const std::string type = fields.string("bnb_4bit_quant_type").value_or("fp4");
    const bool nested = fields.boolean("bnb_4bit_use_double_quant").value_or(false);
    const std::string format = type == "nf4" ? "nf4" : "bnb_" + type;
    group.weights = make_choice(format, 4, nested ? "nested" : "", Role::weight, fields.place());
    group.weights->group_size = 64;
    if (nested) out.notes.push_back("the block maxima are quantized too (double quantization)");
  } else {
    group.weights = make_choice("int8", 8, "channel:sf32", Role::weight, fields.place());
    group.weights->granularity = "channel";
    group.activations = make_choice("int8", 8, "token", Role::activation, fields.place());
    group.activations->granularity = "token";
    group.activations->dynamic = "true";
    out.notes.push_back("LLM.int8(): input channels with outliers are multiplied in 16 bits");
  }
  group.weights->symmetric = true;
  out.groups.push_back(std::move(group));
}

void read_mxfp4(const QuantFields& fields, QuantConfig& out) {
  out.ignored = fields.strings("modules_to_not_convert");
  out.experts_only = true;  // transformers' integrations/mxfp4.py replaces the experts' modules alone
  QuantGroup group;
  group.weights = make_choice("mxfp4", 4, "", Role::weight, fields.place());
  group.weights->group_size = 32;
  group.weights->symmetric = true;
  out.groups.push_back(std::move(group));
}

}  // namespace quantmap
