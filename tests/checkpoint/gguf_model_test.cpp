#include "checkpoint/gguf_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/expect_error.hpp"
#include "checkpoint/make_files.hpp"
#include "support/paths.hpp"

namespace quantmap::testing {
namespace {

namespace fs = std::filesystem;

std::vector<float> read_all(const Checkpoint& checkpoint, const std::string& name) {
  const TensorEntry* entry = checkpoint.find(name);
  EXPECT_NE(entry, nullptr) << name;
  std::size_t count = 1;
  for (const std::int64_t size : entry->shape) count *= static_cast<std::size_t>(size);
  std::vector<float> out(count);
  checkpoint.read(name, 0, entry->shape.size() == 2 ? entry->shape[0] : 1, out.data());
  return out;
}

TEST(GgufModel, TheSameWeightsAsTheHfDirectoryUnderTheSameNames) {
  const fs::path dir = fresh_dir("gguf_model");
  for (const char* family : {"llama", "mistral", "qwen2", "qwen3"})
    for (const char* dtype : {"F32", "BF16"})
      for (const bool tied : {false, true}) {
        SCOPED_TRACE(std::string(family) + " " + dtype + (tied ? " tied" : ""));
        TinyModel model{.family = family, .tied = tied, .dtype = dtype};
        // Biases are permuted with their rows (B35).
        if (model.family == "llama") model.config = {{"attention_bias", true}, {"mlp_bias", true}};
        write_tiny_model(dir, model);
        write_tiny_gguf(dir / "m.gguf", model);
        const Checkpoint hf = Checkpoint::open(dir);
        const Checkpoint gguf = Checkpoint::open(dir / "m.gguf");
        EXPECT_TRUE(gguf.warnings().empty());
        for (const TinyTensor& tensor : tiny_weights(model))
          EXPECT_EQ(read_all(gguf, tensor.name), tensor.values) << tensor.name;
        EXPECT_EQ(gguf.tensors().size(), hf.tensors().size());
        const ModelConfig& a = hf.config();
        const ModelConfig& b = gguf.config();
        EXPECT_EQ(a.vocab_size, b.vocab_size);
        EXPECT_EQ(a.hidden_size, b.hidden_size);
        EXPECT_EQ(a.intermediate_size, b.intermediate_size);
        EXPECT_EQ(a.layers, b.layers);
        EXPECT_EQ(a.heads, b.heads);
        EXPECT_EQ(a.kv_heads, b.kv_heads);
        EXPECT_EQ(a.head_dim, b.head_dim);
        EXPECT_EQ(a.max_position, b.max_position);
        EXPECT_TRUE(std::abs(a.rms_norm_eps - b.rms_norm_eps) <= 1e-12);  // a float there
        EXPECT_EQ(a.qk_norm, b.qk_norm);
        EXPECT_EQ(a.q_bias, b.q_bias);
        EXPECT_EQ(a.v_bias, b.v_bias);
        EXPECT_EQ(a.o_bias, b.o_bias);
        EXPECT_EQ(a.mlp_bias, b.mlp_bias);
        EXPECT_EQ(b.tied_embeddings, tied);
        EXPECT_EQ(a.window, b.window);
        EXPECT_EQ(a.rope.theta, b.rope.theta);
      }
}

// B35. head_dim 4 would prove nothing: that permutation is its own inverse.
TEST(GgufModel, InterleavedRowsAreGatheredHeadByHead) {
  const auto gather = [](std::int64_t head_dim, std::int64_t rows) {
    std::vector<std::int64_t> out;
    for (std::int64_t row = 0; row < rows; ++row) out.push_back(interleaved_row(row, head_dim));
    return out;
  };
  EXPECT_EQ(gather(8, 8), (std::vector<std::int64_t>{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(gather(4, 8), (std::vector<std::int64_t>{0, 2, 1, 3, 4, 6, 5, 7}));  // two KV heads of 4
  EXPECT_EQ(gather(2, 4), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(gather(8, 16)[9], 10);
}

TEST(GgufModel, OnlyLlamasQueriesAndKeysAreInterleaved) {
  ModelConfig llama, qwen;
  llama.model_type = "llama";
  qwen.model_type = "qwen2";
  EXPECT_TRUE(has_interleaved_rows(llama, "model.layers.3.self_attn.q_proj.weight"));
  EXPECT_TRUE(has_interleaved_rows(llama, "model.layers.3.self_attn.k_proj.bias"));
  EXPECT_FALSE(has_interleaved_rows(llama, "model.layers.3.self_attn.v_proj.weight"));
  EXPECT_FALSE(has_interleaved_rows(llama, "model.layers.3.self_attn.o_proj.weight"));
  EXPECT_FALSE(has_interleaved_rows(llama, "model.layers.3.mlp.up_proj.weight"));
  EXPECT_FALSE(has_interleaved_rows(qwen, "model.layers.3.self_attn.q_proj.weight"));
}

TEST(GgufModel, NamesAreMappedAndOthersKeptAsTheyAre) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"token_embd.weight", "model.embed_tokens.weight"},
      {"output_norm.weight", "model.norm.weight"},
      {"output.weight", "lm_head.weight"},
      {"blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight"},
      {"blk.12.attn_k.bias", "model.layers.12.self_attn.k_proj.bias"},
      {"blk.12.attn_output.weight", "model.layers.12.self_attn.o_proj.weight"},
      {"blk.12.attn_k_norm.weight", "model.layers.12.self_attn.k_norm.weight"},
      {"blk.12.attn_norm.weight", "model.layers.12.input_layernorm.weight"},
      {"blk.12.ffn_norm.weight", "model.layers.12.post_attention_layernorm.weight"},
      {"blk.12.ffn_down.weight", "model.layers.12.mlp.down_proj.weight"},
      // What these families do not have, and numbers that are not written plainly, stay as they are.
      {"rope_freqs.weight", "rope_freqs.weight"},
      {"blk.0.ffn_gate_exps.weight", "blk.0.ffn_gate_exps.weight"},
      {"blk.0.attn_q.scale", "blk.0.attn_q.scale"},
      {"blk.01.attn_q.weight", "blk.01.attn_q.weight"},
      {"blk.x.attn_q.weight", "blk.x.attn_q.weight"},
      {"blk..attn_q.weight", "blk..attn_q.weight"},
      {"blk.0", "blk.0"},
      {"", ""},
  };
  for (const auto& [gguf, hf] : cases) EXPECT_EQ(hf_tensor_name(gguf), hf);
}

TEST(GgufModel, BlockTypesAreDecodedAndRoundedOnceToBf16) {
  // One Q8_0 block a row: d = FP16(0.1), codes 1..32; d * 3 is not a BF16 number.
  const fs::path dir = fresh_dir("gguf_blocks");
  TinyModel model{.family = "qwen2", .layers = 1, .hidden = 32, .intermediate = 32};
  GgufWriter gguf = tiny_gguf_header(model);
  std::string row = raw<std::uint16_t>(0x2E66);
  for (int i = 1; i <= 32; ++i) row += static_cast<char>(i);
  for (TinyTensor& tensor : tiny_weights(model)) {
    std::string bytes;
    for (std::int64_t i = 0; tensor.name.find("mlp.up_proj") != std::string::npos && i < tensor.shape[0]; ++i)
      bytes += row;
    if (bytes.empty())
      gguf.tensor(gguf_name(tensor.name), 0, tensor.shape, encode_values(tensor.values, "F32"));
    else
      gguf.tensor(gguf_name(tensor.name), 8, tensor.shape, bytes);
  }
  write_file(dir / "m.gguf", gguf.file());
  const Checkpoint checkpoint = Checkpoint::open(dir / "m.gguf");
  const std::vector<float> values = read_all(checkpoint, "model.layers.0.mlp.up_proj.weight");
  const float d = 0x1.998p-4F;
  ASSERT_NE(round_to_bf16(d * 3.0F), d * 3.0F);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], round_to_bf16(d * static_cast<float>(i % 32 + 1)));
  EXPECT_EQ(checkpoint.find("model.layers.0.mlp.up_proj.weight")->dtype, "Q8_0");
}

// A tiny GGUF with its metadata and tensors changed.
std::string edited(const TinyModel& model, const std::function<void(GgufWriter&)>& edit) {
  GgufWriter gguf = tiny_gguf_header(model);
  edit(gguf);
  add_tiny_tensors(gguf, model);
  return gguf.file();
}

ModelConfig config_of(const std::string& bytes) {
  return gguf_config(GgufFile::parse(as_span(bytes), "x.gguf"));
}

TEST(GgufModel, RopeScalingIsWhatLlamaCppMakesOfIt) {
  const TinyModel model{.family = "llama"};
  const auto rope = [&](const std::function<void(GgufWriter&)>& edit) {
    return config_of(edited(model, edit)).rope;
  };
  const std::string factor = "llama.rope.scaling.factor";
  const std::string type = "llama.rope.scaling.type";

  EXPECT_EQ(rope([](auto&) {}).kind, RopeKind::standard);
  // Without a type a factor is linear.
  EXPECT_EQ(rope([&](auto& g) { g.f32(factor, 4); }).kind, RopeKind::linear);
  EXPECT_EQ(rope([&](auto& g) { g.f32(factor, 4); }).factor, 4.0);
  EXPECT_EQ(rope([&](auto& g) { g.f32("llama.rope.scale_linear", 2); }).factor, 2.0);
  EXPECT_EQ(rope([&](auto& g) { g.f32(factor, 0); }).kind, RopeKind::standard);
  EXPECT_EQ(rope([&](auto& g) {
              g.string(type, "none");
              g.f32(factor, 4);
            }).kind,
            RopeKind::standard);

  const RopeConfig yarn = rope([&](auto& g) {
    g.string(type, "yarn");
    g.f32(factor, 8);
    g.u32("llama.rope.scaling.original_context_length", 64);
    g.f32("llama.rope.scaling.attn_factor", 0.5F);
    g.f32("llama.rope.scaling.yarn_beta_fast", 16);
  });
  EXPECT_EQ(yarn.kind, RopeKind::yarn);
  EXPECT_EQ(yarn.factor, 8.0);
  EXPECT_EQ(yarn.original_max_position, 64.0);
  EXPECT_EQ(yarn.beta_fast, 16.0);
  EXPECT_EQ(yarn.beta_slow, 1.0);
  EXPECT_TRUE(std::abs(yarn.attention_factor - 0.5 * (0.1 * std::log(8.0) + 1)) <= 1e-15);
}

TEST(GgufModel, Llama3ScalingIsATensorOfDivisors) {
  const TinyModel model{.family = "llama"};
  const std::vector<float> factors = {1, 1, 1, 1, 2, 3.5F, 8, 8};
  const auto with = [&](const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
    return edited(model, [&](GgufWriter& g) { g.tensor("rope_freqs.weight", 0, shape, raw_array(values)); });
  };
  const std::string file = with({8}, factors);
  EXPECT_EQ(config_of(file).rope.frequency_factors, factors);
  const fs::path dir = fresh_dir("rope_freqs");
  write_file(dir / "m.gguf", file);
  EXPECT_TRUE(Checkpoint::open(dir / "m.gguf").warnings().empty());  // used, though no layer names it
  expect_line(input_error([&] {
                config_of(with({4}, {1, 1, 1, 1}));
              }),
              {"rope_freqs.weight", "F32 [8]", "[4]"});
  expect_line(input_error([&] {
                config_of(with({8}, {1, 1, 1, 1, 1, 1, 1, 0}));
              }),
              {"rope_freqs.weight", "above 0", "0"});
}

TEST(GgufModel, MetadataThatCannotBeUsedIsNamed) {
  const TinyModel model{.family = "llama"};
  struct Case {
    const char* why;
    std::function<void(GgufWriter&)> edit;
    std::vector<std::string> parts;
  };
  const auto u32 = [](const char* key, std::uint32_t value) {
    return [key, value](GgufWriter& g) { g.u32(key, value); };
  };
  const auto f32 = [](const char* key, float value) {
    return [key, value](GgufWriter& g) { g.f32(key, value); };
  };
  const auto text = [](const char* key, const char* value) {
    return [key, value](GgufWriter& g) { g.string(key, value); };
  };
  const std::vector<Case> cases = {
      {"a part of a split file", u32("split.count", 3), {"split.count", "one of 3 parts"}},
      {"experts", u32("llama.expert_count", 8), {"llama.expert_count", "mixture of experts", "8"}},
      {"another vocabulary", u32("llama.vocab_size", 65), {"llama.vocab_size", "64", "65"}},
      {"LongRoPE", text("llama.rope.scaling.type", "longrope"), {"llama.rope.scaling.type", "\"longrope\""}},
      {"a type that is a number", u32("llama.rope.scaling.type", 2), {"llama.rope.scaling.type", "a string"}},
      {"YaRN without a factor",
       text("llama.rope.scaling.type", "yarn"),
       {"llama.rope.scaling.factor", "none"}},
      {"a negative factor", f32("llama.rope.scaling.factor", -0.5F), {"llama.rope.scaling.factor", "-0.5"}},
      {"NaN", f32("llama.rope.scaling.factor", std::nanf("")), {"llama.rope.scaling.factor", "nan"}},
      {"an attention factor that nothing applies",
       f32("llama.rope.scaling.attn_factor", 2),
       {"attn_factor", "2"}},
      {"a scale of another architecture", f32("llama.attention.scale", 2), {"llama.attention.scale"}},
      {"LongRoPE factors",
       [](GgufWriter& g) { g.tensor("rope_factors_long.weight", 0, {1}, raw(1.0F)); },
       {"rope_factors_long.weight", "LongRoPE"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    const std::string line = input_error([&] { config_of(edited(model, c.edit)); });
    expect_line(line, c.parts);
    expect_line(line, {": x.gguf: "});
  }
}

// The header of a tiny model again, one key left out or put in place of the right one.
TEST(GgufModel, EveryNeededKeyIsNeededInItsRange) {
  struct Case {
    const char* key;
    std::function<void(GgufWriter&, const std::string&)> put;  // empty: left out
    std::vector<std::string> parts;
  };
  const auto u32 = [](std::uint32_t value) {
    return [value](GgufWriter& g, const std::string& key) { g.u32(key, value); };
  };
  const std::vector<Case> cases = {
      {"general.architecture", {}, {"general.architecture", "no such key"}},
      {"general.architecture",
       [](GgufWriter& g, const std::string& key) { g.string(key, "gemma3"); },
       {"general.architecture", "llama, qwen2 or qwen3", "\"gemma3\""}},
      {"general.architecture", u32(1), {"general.architecture", "a string"}},
      {"llama.block_count", {}, {"llama.block_count", "no such key"}},
      {"llama.block_count", u32(0), {"llama.block_count", "0"}},
      {"llama.block_count", u32(4000000000U), {"llama.block_count", "4000000000"}},
      {"llama.embedding_length", {}, {"llama.embedding_length", "no such key"}},
      {"llama.feed_forward_length", {}, {"llama.feed_forward_length", "no such key"}},
      {"llama.attention.head_count", {}, {"llama.attention.head_count", "no such key"}},
      {"llama.attention.head_count", u32(3), {"llama.attention.head_count_kv", "divisor of 3", "2"}},
      {"llama.attention.key_length", u32(15), {"llama.attention.key_length", "even", "15"}},
      {"llama.attention.value_length", u32(8), {"llama.attention.value_length", "16", "8"}},
      {"llama.context_length", {}, {"llama.context_length", "no such key"}},
      {"llama.attention.layer_norm_rms_epsilon", {}, {"layer_norm_rms_epsilon", "no such key"}},
      {"llama.rope.dimension_count", u32(4), {"llama.rope.dimension_count", "16", "4"}},
      {"llama.rope.freq_base",
       [](GgufWriter& g, const std::string& key) { g.f32(key, 0); },
       {"llama.rope.freq_base"}},
      // Layers of different width are another architecture; the same number in each is one number.
      {"llama.feed_forward_length",
       [](GgufWriter& g, const std::string& key) {
         g.array(key, 4, 2, raw<std::uint32_t>(48) + raw<std::uint32_t>(64));
       },
       {"llama.feed_forward_length", "one number for all layers", "[48,64]"}},
  };
  const TinyModel model{.family = "llama"};
  const auto header = [&](const std::string& key,
                          const std::function<void(GgufWriter&, const std::string&)>& put) {
    const std::string right = tiny_gguf_header(model).file();
    const GgufFile file = GgufFile::parse(as_span(right), "right");
    GgufWriter gguf;
    for (const std::string_view name : file.keys()) {
      if (name == key) {
        if (put) put(gguf, key);
      } else if (name == "general.architecture") {
        gguf.string(name, *file.string(name));
      } else if (name.ends_with("epsilon") || name.ends_with("freq_base")) {
        gguf.f32(name, static_cast<float>(*file.number(name)));
      } else {
        gguf.u32(name, static_cast<std::uint32_t>(*file.integer(name)));
      }
    }
    add_tiny_tensors(gguf, model);
    return gguf.file();
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.key);
    expect_line(input_error([&] { config_of(header(c.key, c.put)); }), c.parts);
  }
  const auto twice = [](GgufWriter& g, const std::string& key) {
    g.array(key, 4, 2, raw<std::uint32_t>(2) + raw<std::uint32_t>(2));
  };
  EXPECT_EQ(config_of(header("llama.attention.head_count_kv", twice)).kv_heads, 2);
  EXPECT_EQ(config_of(header("llama.attention.head_count_kv", {})).kv_heads, 4);
  EXPECT_EQ(config_of(header("llama.rope.dimension_count", {})).head_dim, 16);
  EXPECT_EQ(config_of(header("llama.rope.freq_base", {})).rope.theta, 10000.0);
}

TEST(GgufModel, AWindowIsThatOfEveryLayer) {
  const TinyModel model{.family = "mistral"};
  const auto file = edited(model, [](GgufWriter& g) { g.u32("llama.attention.sliding_window", 100); });
  EXPECT_EQ(config_of(file).window, (std::vector<std::int64_t>{100, 100}));
}

TEST(GgufModel, WhatTheFileLacksOrHasTooMuchIsSaid) {
  const fs::path dir = fresh_dir("gguf_lacks");
  const TinyModel model{.family = "llama", .layers = 1};
  const auto write = [&](const std::string& left_out, bool extra) {
    GgufWriter gguf = tiny_gguf_header(model);
    for (const TinyTensor& t : tiny_weights(model))
      if (t.name != left_out) gguf.tensor(gguf_name(t.name), 0, t.shape, encode_values(t.values, "F32"));
    if (extra) gguf.tensor("blk.0.odd.weight", 0, {1}, raw(1.0F));
    write_file(dir / "m.gguf", gguf.file());
  };
  write("model.norm.weight", false);
  expect_line(input_error([&] { Checkpoint::open(dir / "m.gguf"); }),
              {"bad checkpoint", "m.gguf", "model.norm.weight", "[32]", "no such tensor"});
  write("model.embed_tokens.weight", false);
  expect_line(input_error([&] { Checkpoint::open(dir / "m.gguf"); }), {"m.gguf", "token_embd.weight"});
  write("", true);
  const Checkpoint checkpoint = Checkpoint::open(dir / "m.gguf");
  ASSERT_EQ(checkpoint.warnings().size(), 1U);
  expect_line(checkpoint.warnings()[0], {"1 tensor", "\"blk.0.odd.weight\""});
}

}  // namespace
}  // namespace quantmap::testing
