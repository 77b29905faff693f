// The checkpoints and configurations of ../shared/data, the demo model, and SmolLM2 where it was fetched.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/expect_error.hpp"
#include "checkpoint/gguf.hpp"
#include "checkpoint/make_files.hpp"
#include "checkpoint/safetensors.hpp"
#include "core/mapped_file.hpp"
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

TEST(Models, TheDemoModelOpens) {
  const Checkpoint checkpoint = Checkpoint::open(demo_dir());
  const ModelConfig& config = checkpoint.config();
  EXPECT_EQ(config.model_type, "qwen3");
  EXPECT_EQ(config.layers, 6);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.vocab_size, 4096);
  EXPECT_TRUE(checkpoint.warnings().empty());
  const std::vector<float> norm = read_all(checkpoint, "model.norm.weight");
  for (const float value : norm) EXPECT_TRUE(std::isfinite(value));
}

TEST(Models, EveryTinyModelOpensWithoutAWarning) {
  const fs::path models = shared_dir() / "data/tiny-models";
  QUANTMAP_NEEDS(models);
  struct Facts {
    const char* family;
    int heads, kv_heads, head_dim;
    bool tied;
    RopeKind rope;
    std::vector<std::int64_t> window;
  };
  const std::map<std::string, Facts> expected = {
      {"llama", {"llama", 4, 2, 16, false, RopeKind::standard, {0, 0, 0}}},
      {"llama-bias-linear", {"llama", 8, 4, 20, false, RopeKind::linear, {0, 0, 0}}},
      {"llama3-rope", {"llama", 4, 2, 32, true, RopeKind::llama3, {0, 0, 0}}},
      {"mistral-sliding", {"mistral", 4, 2, 16, false, RopeKind::standard, {16, 16, 16}}},
      {"qwen2", {"qwen2", 4, 2, 16, true, RopeKind::standard, {0, 0, 0}}},
      {"qwen2-window", {"qwen2", 4, 2, 16, true, RopeKind::standard, {0, 0, 12}}},
      {"qwen3-bf16", {"qwen3", 4, 2, 32, false, RopeKind::standard, {0, 0, 0}}},
      {"qwen3-yarn-sharded", {"qwen3", 8, 2, 16, false, RopeKind::yarn, {0, 0, 0}}},
  };
  for (const auto& [name, facts] : expected) {
    SCOPED_TRACE(name);
    const Checkpoint checkpoint = Checkpoint::open(models / name);
    const ModelConfig& config = checkpoint.config();
    EXPECT_TRUE(checkpoint.warnings().empty());
    EXPECT_EQ(config.model_type, facts.family);
    EXPECT_EQ(config.heads, facts.heads);
    EXPECT_EQ(config.kv_heads, facts.kv_heads);
    EXPECT_EQ(config.head_dim, facts.head_dim);
    EXPECT_EQ(config.tied_embeddings, facts.tied);
    EXPECT_EQ(config.rope.kind, facts.rope);
    EXPECT_EQ(config.window, facts.window);
    for (const TensorEntry& tensor : checkpoint.tensors())
      for (const float value : read_all(checkpoint, tensor.name))
        ASSERT_TRUE(std::isfinite(value)) << tensor.name;
  }
}

// The embeddings of a token are a row of the table: known from the independent implementation.
TEST(Models, TheFirstHiddenStatesAreRowsOfTheEmbeddings) {
  const fs::path models = shared_dir() / "data/tiny-models";
  QUANTMAP_NEEDS(models);
  for (const char* name : {"llama", "qwen3-bf16", "qwen3-yarn-sharded"}) {
    SCOPED_TRACE(name);
    const Checkpoint checkpoint = Checkpoint::open(models / name);
    const SafetensorsFile expected = SafetensorsFile::open(models / name / "expected.safetensors");
    const SafetensorsEntry* ids = expected.find("input_ids");
    const SafetensorsEntry* hidden = expected.find("hidden.0");
    ASSERT_TRUE(ids && hidden);
    ASSERT_EQ(ids->dtype, "I32");
    ASSERT_EQ(hidden->dtype, "F32");
    const std::int64_t width = checkpoint.config().hidden_size;
    std::vector<float> row(static_cast<std::size_t>(width)), state(row);
    for (std::int64_t i = 0; i < ids->bytes / 4; ++i) {
      std::int32_t id = 0;
      std::memcpy(&id, ids->data + 4 * i, sizeof id);
      std::memcpy(state.data(), hidden->data + 4 * width * i, row.size() * 4);
      checkpoint.read("model.embed_tokens.weight", id, id + 1, row.data());
      ASSERT_EQ(row, state) << i;
    }
  }
}

TEST(Models, TinyLlamaWithoutAKeyForTheHeadHasAHeadOfItsOwn) {
  const fs::path dir = shared_dir() / "data/tiny-llama-golden";
  QUANTMAP_NEEDS(dir);
  const fs::path copy = fresh_dir("tiny_llama");
  fs::copy_file(dir / "config.json", copy / "config.json");
  fs::copy_file(dir / "tiny_llama.safetensors", copy / "model.safetensors");
  const Checkpoint checkpoint = Checkpoint::open(copy);
  EXPECT_FALSE(checkpoint.config().tied_embeddings);
  EXPECT_EQ(checkpoint.tensors().size(), 21U);
  EXPECT_TRUE(checkpoint.warnings().empty());
  expect_line(input_error([&] { Checkpoint::open(dir); }), {"model.safetensors", "neither"});
}

// Geometry of published models, and the name of what is not supported.
TEST(Models, PublishedConfigsParseOrAreRefusedByName) {
  const fs::path configs = shared_dir() / "data/configs/models";
  QUANTMAP_NEEDS(configs);
  struct Facts {
    std::int64_t hidden;
    int layers, heads, kv_heads, head_dim;
    std::int64_t vocab, last_window;
    bool tied;
  };
  const std::map<std::string, Facts> known = {
      {"Llama-3.2-1B", {2048, 16, 32, 8, 64, 128256, 0, true}},
      {"Mistral-7B-v0.1", {4096, 32, 32, 8, 128, 32000, 4096, false}},
      {"Qwen--Qwen3-0.6B", {1024, 28, 16, 8, 128, 151936, 0, true}},  // B45
      {"Qwen--Qwen3-8B", {4096, 36, 32, 8, 128, 151936, 0, false}},
      {"Qwen--Qwen3-32B", {5120, 64, 64, 8, 128, 151936, 0, false}},
      {"Qwen2.5-0.5B", {896, 24, 14, 2, 64, 151936, 0, true}},
      {"Qwen2.5-7B", {3584, 28, 28, 4, 128, 152064, 0, false}},
      {"SmolLM-1.7B", {2048, 24, 32, 32, 64, 49152, 0, true}},
      {"meta-llama--Meta-Llama-3.1-70B", {8192, 80, 64, 8, 128, 128256, 0, false}},
      {"meta-llama--Meta-Llama-3.1-8B", {4096, 32, 32, 8, 128, 128256, 0, false}},
  };
  std::size_t parsed = 0;
  for (const auto& entry : fs::directory_iterator(configs)) {
    std::string name = entry.path().filename().string();
    name.resize(name.size() - std::string("_config.json").size());
    SCOPED_TRACE(name);
    const auto facts = known.find(name);
    if (facts == known.end()) {
      const auto json = nlohmann::json::parse(read_text_file(entry.path()));
      const std::string type = json.at("model_type");
      const std::string line = input_error([&] { read_config(entry.path()); });
      // A multimodal one is named by the part that makes it so.
      expect_line(line, {entry.path().filename().string(),
                         json.contains("text_config") ? "text_config" : "\"" + type + "\""});
      continue;
    }
    const ModelConfig config = read_config(entry.path());
    EXPECT_EQ(config.hidden_size, facts->second.hidden);
    EXPECT_EQ(config.layers, facts->second.layers);
    EXPECT_EQ(config.heads, facts->second.heads);
    EXPECT_EQ(config.kv_heads, facts->second.kv_heads);
    EXPECT_EQ(config.head_dim, facts->second.head_dim);
    EXPECT_EQ(config.vocab_size, facts->second.vocab);
    EXPECT_EQ(config.window.back(), facts->second.last_window);
    EXPECT_EQ(config.tied_embeddings, facts->second.tied);
    ++parsed;
  }
  EXPECT_EQ(parsed, known.size());
}

TEST(Models, QuantizedConfigsAreRefusedInOneLine) {
  const fs::path configs = shared_dir() / "data/configs/quant";
  QUANTMAP_NEEDS(configs);
  for (const auto& entry : fs::directory_iterator(configs)) {
    SCOPED_TRACE(entry.path().filename());
    expect_line(input_error([&] { read_config(entry.path()); }),
                {"bad config", entry.path().filename().string()});
  }
}

// stories260K: the converter's GGUF against the file that it was made from, rows of q and k put back.
TEST(Models, Stories260KHasTheValuesOfItsSource) {
  const fs::path dir = shared_dir() / "data/stories260K";
  QUANTMAP_NEEDS(dir / "stories260K.gguf");
  const Checkpoint checkpoint = Checkpoint::open(dir / "stories260K.gguf");
  const ModelConfig& config = checkpoint.config();
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.layers, 5);
  EXPECT_EQ(config.heads, 8);
  EXPECT_EQ(config.kv_heads, 4);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.vocab_size, 512);
  EXPECT_TRUE(std::abs(config.rms_norm_eps - 1e-5) <= 1e-9);

  // llama2.c: 7 int32, then F32 arrays; its q and k rows are interleaved as in the GGUF file.
  const std::string bin = read_text_file(dir / "stories260K.bin");
  std::vector<float> floats((bin.size() - 28) / 4);
  std::memcpy(floats.data(), bin.data() + 28, floats.size() * 4);
  const std::vector<float> embeddings(floats.begin(), floats.begin() + 512 * 64);
  EXPECT_EQ(read_all(checkpoint, "model.embed_tokens.weight"), embeddings);
  const auto at = floats.begin() + 512 * 64 + 5 * 64;  // past the embeddings and the attention norms
  for (int layer = 0; layer < 5; ++layer) {
    const std::vector<float> wq(at + layer * 64 * 64, at + (layer + 1) * 64 * 64);
    const std::vector<float> q =
        read_all(checkpoint, "model.layers." + std::to_string(layer) + ".self_attn.q_proj.weight");
    EXPECT_EQ(interleave_rows(q, 8, 64), wq) << layer;
    EXPECT_NE(q, wq);
    const auto keys = at + 5 * 64 * 64;
    const std::vector<float> wk(keys + layer * 32 * 64, keys + (layer + 1) * 32 * 64);
    EXPECT_EQ(interleave_rows(
                  read_all(checkpoint, "model.layers." + std::to_string(layer) + ".self_attn.k_proj.weight"),
                  8, 64),
              wk);
  }
}

TEST(Models, VocabularyFilesHaveNoModelButOpen) {
  const fs::path dir = shared_dir() / "data/gguf-vocab";
  QUANTMAP_NEEDS(dir);
  for (const char* name : {"ggml-vocab-gpt-2.gguf", "ggml-vocab-phi-3.gguf"}) {
    SCOPED_TRACE(name);
    const GgufFile file = GgufFile::open(dir / name);
    EXPECT_GT(file.strings("tokenizer.ggml.tokens").size(), 30000U);
    expect_line(input_error([&] { Checkpoint::open(dir / name); }), {name, "general.architecture"});
  }
}

TEST(Models, SmolLm2OpensFromItsGguf) {
  const char* set = std::getenv("QUANTMAP_SMOLLM2");
  const fs::path path = set ? fs::path(set) : source_dir() / "datasets/cache/SmolLM2-135M-Instruct.Q4_1.gguf";
  QUANTMAP_NEEDS(path);
  const Checkpoint checkpoint = Checkpoint::open(path);
  const ModelConfig& config = checkpoint.config();
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.hidden_size, 576);
  EXPECT_EQ(config.layers, 30);
  EXPECT_EQ(config.heads, 9);
  EXPECT_EQ(config.kv_heads, 3);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.vocab_size, 49152);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_TRUE(checkpoint.warnings().empty());
  for (const TensorEntry& tensor : checkpoint.tensors()) {
    const bool block = tensor.dtype != "F32";
    for (const float value : read_all(checkpoint, tensor.name)) {
      ASSERT_TRUE(std::isfinite(value)) << tensor.name;
      ASSERT_TRUE(!block || round_to_bf16(value) == value) << tensor.name;
    }
    checkpoint.release(tensor.name);
  }
}

}  // namespace
}  // namespace quantmap::testing
