#include "checkpoint/checkpoint.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/expect_error.hpp"
#include "checkpoint/make_files.hpp"
#include "core/fingerprint.hpp"
#include "core/mapped_file.hpp"
#include "core/parallel.hpp"
#include "support/paths.hpp"

namespace quantmap::testing {
namespace {

namespace fs = std::filesystem;

std::string open_error(const fs::path& path) {
  return input_error([&] { Checkpoint::open(path); });
}

std::vector<float> read_all(const Checkpoint& checkpoint, const std::string& name) {
  const TensorEntry* entry = checkpoint.find(name);
  EXPECT_NE(entry, nullptr) << name;
  std::int64_t rows = 1, count = 1;
  for (std::size_t i = 0; i < entry->shape.size(); ++i) {
    count *= entry->shape[i];
    if (i + 1 < entry->shape.size()) rows *= entry->shape[i];
  }
  std::vector<float> out(static_cast<std::size_t>(count));
  checkpoint.read(name, 0, rows, out.data());
  return out;
}

// The safetensors of a tiny model with its tensors changed.
void rewrite(const fs::path& dir, const TinyModel& model,
             const std::function<void(std::vector<RawTensor>&)>& edit) {
  std::vector<RawTensor> tensors;
  for (const TinyTensor& t : tiny_weights(model))
    tensors.push_back({t.name, model.dtype, t.shape, encode_values(t.values, model.dtype)});
  edit(tensors);
  write_file(dir / "model.safetensors", safetensors_file(tensors));
}

void drop(std::vector<RawTensor>& tensors, const std::string& name) {
  std::erase_if(tensors, [&](const RawTensor& t) { return t.name == name; });
}

RawTensor& named(std::vector<RawTensor>& tensors, const std::string& name) {
  for (RawTensor& t : tensors)
    if (t.name == name) return t;
  throw std::runtime_error("no tensor " + name);
}

TEST(Checkpoint, EveryFamilyGivesBackItsWeights) {
  for (const char* family : {"llama", "mistral", "qwen2", "qwen3"})
    for (const char* dtype : {"F32", "BF16"})
      for (const int shards : {1, 3}) {
        SCOPED_TRACE(std::string(family) + " " + dtype + " " + std::to_string(shards));
        TinyModel model{.family = family, .dtype = dtype, .shards = shards};
        if (model.family == "llama") model.config = {{"attention_bias", true}, {"mlp_bias", true}};
        const fs::path dir = fresh_dir("families");
        write_tiny_model(dir, model);
        const Checkpoint checkpoint = Checkpoint::open(dir);
        EXPECT_EQ(checkpoint.config().model_type, family);
        EXPECT_TRUE(checkpoint.warnings().empty());
        std::size_t count = 0;
        for (const TinyTensor& tensor : tiny_weights(model)) {
          EXPECT_EQ(read_all(checkpoint, tensor.name), tensor.values) << tensor.name;
          EXPECT_EQ(checkpoint.find(tensor.name)->dtype, dtype);
          ++count;
        }
        EXPECT_EQ(checkpoint.tensors().size(), count);
      }
}

TEST(Checkpoint, AnyRangeOfRowsIsThatPartOfTheWhole) {
  const fs::path dir = fresh_dir("rows");
  const TinyModel model{.family = "llama"};
  write_tiny_model(dir, model);
  write_tiny_gguf(dir / "m.gguf", model);
  for (const fs::path& path : {dir, dir / "m.gguf"}) {
    const Checkpoint checkpoint = Checkpoint::open(path);
    const std::string name = "model.layers.1.self_attn.q_proj.weight";
    const std::vector<float> whole = read_all(checkpoint, name);
    for (const auto& [begin, end] :
         std::vector<std::pair<int, int>>{{0, 1}, {5, 6}, {7, 30}, {63, 64}, {9, 9}}) {
      std::vector<float> part(static_cast<std::size_t>(end - begin) * 32);
      checkpoint.read(name, begin, end, part.data());
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + begin * 32)) << begin;
    }
    float value = 0;
    EXPECT_THROW(checkpoint.read(name, 0, 65, &value), Error);
    EXPECT_THROW(checkpoint.read(name, -1, 0, &value), Error);
    EXPECT_THROW(checkpoint.read(name, 2, 1, &value), Error);
    expect_line(input_error([&] { checkpoint.read("no.such", 0, 0, &value); }),
                {"\"no.such\"", "no such tensor"});
    checkpoint.release(name);  // given back, and there again when asked for
    EXPECT_EQ(read_all(checkpoint, name), whole);
  }
}

// A file may mix types, and an odd-sized tensor leaves the next ones where no float lies.
TEST(Checkpoint, EveryPlainTypeIsExactAtAnyAlignment) {
  const fs::path dir = fresh_dir("types");
  const TinyModel model{.layers = 1};
  write_tiny_model(dir, model);
  const std::vector<std::uint16_t> halves = {0x3C00, 0xC000, 0x0001, 0x7BFF, 0x8000, 0x3555};
  const std::vector<float> values = {1.0F, -2.0F, 0x1p-24F, 65504.0F, -0.0F, 0x1.554p-2F};
  std::vector<std::uint16_t> norm(32);
  std::vector<float> expected(32);
  for (std::size_t i = 0; i < 32; ++i) norm[i] = halves[i % 6], expected[i] = values[i % 6];
  rewrite(dir, model, [&](auto& tensors) {
    tensors.insert(tensors.begin(), {"odd", "U8", {3}, "abc"});
    named(tensors, "model.norm.weight").dtype = "F16";
    named(tensors, "model.norm.weight").bytes = raw_array(norm);
  });
  const Checkpoint checkpoint = Checkpoint::open(dir);
  EXPECT_EQ(read_all(checkpoint, "model.norm.weight"), expected);
  const std::string q = "model.layers.0.self_attn.q_proj.weight";
  EXPECT_EQ(read_all(checkpoint, q), tiny_weights(model)[2].values);
  ASSERT_EQ(tiny_weights(model)[2].name, q);
}

TEST(Checkpoint, ReadingFromManyThreadsGivesTheSame) {
  const fs::path dir = fresh_dir("threads");
  const TinyModel model{.family = "llama"};
  write_tiny_gguf(dir / "m.gguf", model);
  const Checkpoint checkpoint = Checkpoint::open(dir / "m.gguf");
  const std::vector<TinyTensor> weights = tiny_weights(model);
  std::vector<int> right(200, 0);
  parallel_for(200, [&](std::int64_t i, int) {
    const TinyTensor& tensor = weights[static_cast<std::size_t>(i) % weights.size()];
    right[static_cast<std::size_t>(i)] = read_all(checkpoint, tensor.name) == tensor.values;
    checkpoint.release(tensor.name);
  });
  EXPECT_EQ(std::count(right.begin(), right.end(), 1), 200);
}

// B25: the head is the embeddings where the file has none, and is said unless the key says it.
TEST(Checkpoint, AHeadThatIsNotThereIsTheEmbeddings) {
  const fs::path dir = fresh_dir("tied");
  struct Case {
    nlohmann::json tie;  // null: no key
    bool head, tied, warned;
  };
  for (const Case& c : std::vector<Case>{{true, false, true, false},
                                         {false, false, true, true},
                                         {nullptr, false, true, true},
                                         {false, true, false, false},
                                         {nullptr, true, false, false},
                                         {true, true, true, true}}) {  // a head that tying leaves unused
    SCOPED_TRACE(c.tie.dump() + (c.head ? " head" : ""));
    const TinyModel model;  // its weights have a head
    nlohmann::json config = tiny_config(model);
    config.erase("tie_word_embeddings");
    if (!c.tie.is_null()) config["tie_word_embeddings"] = c.tie;
    write_file(dir / "config.json", config.dump());
    rewrite(dir, model, [&](auto& tensors) {
      if (!c.head) drop(tensors, "lm_head.weight");
    });
    const Checkpoint checkpoint = Checkpoint::open(dir);
    EXPECT_EQ(checkpoint.config().tied_embeddings, c.tied);
    ASSERT_EQ(checkpoint.warnings().size(), c.warned ? 1U : 0U);
    if (c.warned) expect_line(checkpoint.warnings()[0], {"lm_head.weight"});
  }
}

// B47: what the architecture has must be there; what no layer uses is reported.
TEST(Checkpoint, EveryTensorOfTheArchitectureIsNeededInItsShape) {
  const fs::path dir = fresh_dir("needed");
  for (const char* family : {"llama", "mistral", "qwen2", "qwen3"}) {
    TinyModel model{.family = family, .layers = 1};
    if (model.family == "llama") model.config = {{"attention_bias", true}, {"mlp_bias", true}};
    write_tiny_model(dir, model);
    for (const TinyTensor& tensor : tiny_weights(model)) {
      if (tensor.name == "lm_head.weight") continue;
      SCOPED_TRACE(std::string(family) + " " + tensor.name);
      rewrite(dir, model, [&](auto& tensors) { drop(tensors, tensor.name); });
      expect_line(open_error(dir), {"bad checkpoint", dir.string(), tensor.name, "no such tensor"});
      rewrite(dir, model, [&](auto& tensors) {
        RawTensor& changed = named(tensors, tensor.name);
        changed.shape[0] += 1;
        changed.bytes +=
            changed.bytes.substr(0, changed.bytes.size() / static_cast<std::size_t>(tensor.shape[0]));
      });
      expect_line(open_error(dir),
                  {"model.safetensors", tensor.name, "expected [" + std::to_string(tensor.shape[0]),
                   "found [" + std::to_string(tensor.shape[0] + 1)});
      rewrite(dir, model, [&](auto& tensors) {
        RawTensor& changed = named(tensors, tensor.name);
        changed.dtype = "I32";
      });
      expect_line(open_error(dir), {tensor.name, "F32, F16 or BF16", "I32"});
    }
  }
}

TEST(Checkpoint, BiasesOfTheFamilyAreLoadedAndOthersReported) {
  const fs::path dir = fresh_dir("biases");
  // Qwen2 without `attention_bias` in its config: q, k and v have a bias, o has none.
  TinyModel qwen{.family = "qwen2", .layers = 1};
  write_tiny_model(dir, qwen);
  EXPECT_NE(Checkpoint::open(dir).find("model.layers.0.self_attn.v_proj.bias"), nullptr);
  rewrite(dir, qwen, [](auto& tensors) {
    tensors.push_back({"model.layers.0.self_attn.o_proj.bias", "F32", {32}, std::string(128, '\0')});
    tensors.push_back(
        {"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {8}, std::string(32, '\0')});  // known
  });
  const Checkpoint checkpoint = Checkpoint::open(dir);
  ASSERT_EQ(checkpoint.warnings().size(), 1U);
  expect_line(checkpoint.warnings()[0],
              {"1 tensor that no layer uses", "model.layers.0.self_attn.o_proj.bias"});
  // It can still be looked at.
  EXPECT_EQ(read_all(checkpoint, "model.layers.0.self_attn.o_proj.bias"), std::vector<float>(32, 0.0F));
}

TEST(Checkpoint, ManyUnusedTensorsAreOneWarning) {
  const fs::path dir = fresh_dir("unused");
  const TinyModel model;
  write_tiny_model(dir, model);
  rewrite(dir, model, [](auto& tensors) {
    for (int i = 0; i < 25; ++i) tensors.push_back({"extra." + std::to_string(i), "I8", {1}, "x"});
  });
  const Checkpoint checkpoint = Checkpoint::open(dir);
  ASSERT_EQ(checkpoint.warnings().size(), 1U);
  expect_line(checkpoint.warnings()[0], {"25 tensors", "\"extra.0\"", "\"extra.19\"", "and 5 more"});
  float value = 0;
  expect_line(input_error([&] { checkpoint.read("extra.0", 0, 1, &value); }),
              {"\"extra.0\"", "decoded", "I8"});
}

// B29: only the shards that the index names, all of them, before any work.
TEST(Checkpoint, ShardsAreThoseOfTheIndexAndNothingElse) {
  const fs::path dir = fresh_dir("shards");
  const TinyModel model{.shards = 2};
  write_tiny_model(dir, model);
  write_file(dir / "model-00003-of-00002.safetensors", "an old quantized copy, no safetensors at all");
  const std::string print = Checkpoint::open(dir).fingerprint();
  fs::remove(dir / "model-00003-of-00002.safetensors");
  EXPECT_EQ(Checkpoint::open(dir).fingerprint(), print);

  // The missing file is named even where another shard is damaged: nothing was opened before.
  const std::string second = read_text_file(dir / "model-00002-of-00002.safetensors");
  const std::string first = read_text_file(dir / "model-00001-of-00002.safetensors");
  write_file(dir / "model-00001-of-00002.safetensors", "damaged");
  fs::remove(dir / "model-00002-of-00002.safetensors");
  expect_line(open_error(dir), {"missing shard", "model-00002-of-00002.safetensors", "no such file"});
  write_file(dir / "model-00002-of-00002.safetensors", second);
  expect_line(open_error(dir), {"bad safetensors file", "model-00001-of-00002.safetensors"});

  // Shards the other way round: each lacks what the index says is in it.
  write_file(dir / "model-00001-of-00002.safetensors", second);
  write_file(dir / "model-00002-of-00002.safetensors", first);
  expect_line(open_error(dir),
              {"bad safetensors index", "model.safetensors.index.json", "no such tensor there"});
}

TEST(Checkpoint, ASingleFileIsTakenBeforeAnIndex) {
  const fs::path dir = fresh_dir("both");
  const TinyModel model{.shards = 2};
  write_tiny_model(dir, model);
  rewrite(dir, model, [](auto&) {});
  fs::remove(dir / "model-00002-of-00002.safetensors");  // the index is not looked at
  EXPECT_EQ(Checkpoint::open(dir).tensors().size(), tiny_weights(model).size());
}

TEST(Checkpoint, ATensorThatTheIndexPutsElsewhereIsNotRead) {
  const fs::path dir = fresh_dir("unlisted");
  const TinyModel model{.shards = 2};
  write_tiny_model(dir, model);
  const fs::path first = dir / "model-00001-of-00002.safetensors";
  std::vector<RawTensor> tensors;
  std::size_t i = 0;
  for (const TinyTensor& t : tiny_weights(model)) {
    // All of the first shard, and a stale copy of one tensor of the second.
    if (i % 2 == 0) tensors.push_back({t.name, "F32", t.shape, encode_values(t.values, "F32")});
    if (i == 1) tensors.push_back({t.name, "F32", {1}, "zzzz"});
    ++i;
  }
  write_file(first, safetensors_file(tensors));
  const Checkpoint checkpoint = Checkpoint::open(dir);
  ASSERT_EQ(checkpoint.warnings().size(), 1U);
  expect_line(checkpoint.warnings()[0], {"not read", "model-00001-of-00002.safetensors"});
  EXPECT_EQ(read_all(checkpoint, tiny_weights(model)[1].name), tiny_weights(model)[1].values);
}

TEST(Checkpoint, AnIndexThatCannotBeUsedIsOneLine) {
  const fs::path dir = fresh_dir("index");
  write_tiny_model(dir, {.shards = 2});
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"", {"not JSON"}},
      {"[]", {"weight_map", "no such key"}},
      {"{}", {"weight_map", "no such key"}},
      {R"({"weight_map":[]})", {"weight_map", "an array"}},
      {R"({"weight_map":{}})", {"weight_map"}},
      {R"({"weight_map":{"w":7}})", {"\"w\"", "7"}},
      {R"({"weight_map":{"w":"../model.safetensors"}})", {"\"w\"", "of this folder", "../model"}},
      {R"({"weight_map":{"w":"a\nb.safetensors"}})", {"\"w\"", "of this folder"}},
      {R"({"weight_map":{"w":"pytorch_model.bin"}})", {"\"w\"", "pytorch_model.bin"}},
      {R"({"weight_map":{"w":"a.safetensors","w":"b.safetensors"}})", {"\"w\"", "twice"}},
      {R"({"weight_map":{"w":"none.safetensors"}})", {"missing shard", "none.safetensors"}},
  };
  for (const auto& [text, parts] : cases) {
    SCOPED_TRACE(text);
    write_file(dir / "model.safetensors.index.json", text);
    expect_line(open_error(dir), parts);
  }
}

TEST(Checkpoint, WhatIsNoCheckpointIsOneLine) {
  const fs::path dir = fresh_dir("no_checkpoint");
  expect_line(open_error(dir / "none"), {"none"});
  expect_line(open_error(dir), {"config.json", "no such file"});
  write_file(dir / "config.json", tiny_config({}).dump());
  expect_line(open_error(dir), {"model.safetensors or model.safetensors.index.json"});
  write_file(dir / "text.txt", "text");
  expect_line(open_error(dir / "text.txt"), {"text.txt", "a directory with config.json or a .gguf file"});
  write_file(dir / "text.gguf", "text");
  expect_line(open_error(dir / "text.gguf"), {"text.gguf", "magic"});
  expect_line(open_error(dir / "none.gguf"), {"none.gguf"});
}

TEST(Checkpoint, TheFingerprintIsOfTheFilesThemselves) {
  const fs::path dir = fresh_dir("fingerprint");
  const TinyModel model{.shards = 2};
  write_tiny_model(dir, model);
  std::string lines;
  for (const char* name :
       {"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})
    lines += sha256(read_text_file(dir / name)) + "  " + name + "\n";
  const Checkpoint checkpoint = Checkpoint::open(dir);
  EXPECT_EQ(checkpoint.fingerprint(), sha256(lines));
  EXPECT_EQ(checkpoint.file_bytes(),
            static_cast<std::int64_t>(fs::file_size(dir / "model-00001-of-00002.safetensors") +
                                      fs::file_size(dir / "model-00002-of-00002.safetensors")));
  EXPECT_EQ(checkpoint.path(), dir);

  write_tiny_gguf(dir / "m.gguf", model);
  const Checkpoint gguf = Checkpoint::open(dir / "m.gguf");
  EXPECT_EQ(gguf.fingerprint(), sha256(read_text_file(dir / "m.gguf")));
  EXPECT_EQ(gguf.file_bytes(), static_cast<std::int64_t>(fs::file_size(dir / "m.gguf")));
}

}  // namespace
}  // namespace quantmap::testing
