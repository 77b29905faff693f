#include "checkpoint/checkpoint.hpp"
#include "checkpoint/gguf.hpp"
#include "checkpoint/gguf_model.hpp"
#include "checkpoint/make_files.hpp"
#include "checkpoint/mutate.hpp"
#include "support/paths.hpp"

namespace quantmap::testing {
namespace {

// Everything that the file offers, and every tensor that can be decoded.
void look_at_all(const GgufFile& file) {
  for (const std::string_view key : file.keys()) {
    ASSERT_TRUE(file.has(key));
    const auto any = [&](auto get) {
      try {
        get();
      } catch (const Error&) {  // of another type
      }
    };
    any([&] { file.string(key); });
    any([&] { file.integer(key); });
    any([&] { file.number(key); });
    any([&] { file.boolean(key); });
    any([&] { file.strings(key); });
    any([&] { file.floats(key); });
    any([&] { file.integers(key); });
    any([&] { file.booleans(key); });
  }
  for (const GgufTensor& tensor : file.tensors()) {
    ASSERT_EQ(file.find(tensor.name), &tensor);
    const std::int64_t values = tensor.bytes / tensor.type->bytes * tensor.type->block;
    if (!tensor.type->decoded || values == 0) continue;
    std::vector<float> out(static_cast<std::size_t>(values));
    decode_ggml(*tensor.type, tensor.data, values, out.data());
  }
}

TEST(GgufMutation, EveryChangedFileIsReadOrRefused) {
  GgufWriter small;
  small.string("general.architecture", "llama");
  small.u32("general.alignment", 32);
  small.strings("tokens", {"a", "bc", ""});
  small.array("scores", 6, 2, raw(1.0F) + raw(2.0F));
  small.boolean("flag", true);
  small.pair("wide", 11, raw<std::int64_t>(-3));
  small.tensor("w", 2, {2, 32}, std::string(36, 'x'));
  small.tensor("k", 12, {256}, std::string(144, 'y'));
  small.tensor("v", 0, {3}, std::string(12, 'z'));
  GgufWriter none;
  expect_read_or_refused({small.file(), none.file()}, 420, 6000, [](const std::string& bytes) {
    const std::vector<char> exact(bytes.begin(), bytes.end());
    look_at_all(GgufFile::parse(as_span({exact.data(), exact.size()}), "mutated"));
  });
}

TEST(GgufMutation, EveryChangedModelIsReadOrRefused) {
  std::vector<std::string> files;
  for (const char* family : {"llama", "qwen2", "qwen3"}) {
    const TinyModel model{.family = family,
                          .layers = 1,
                          .hidden = 8,
                          .intermediate = 8,
                          .heads = 2,
                          .kv_heads = 1,
                          .head_dim = 4,
                          .vocab = 8};
    GgufWriter gguf = tiny_gguf_header(model);
    add_tiny_tensors(gguf, model);
    files.push_back(gguf.file());
  }
  expect_read_or_refused(files, 1500, 3000, [](const std::string& bytes) {
    const std::vector<char> exact(bytes.begin(), bytes.end());
    const ModelConfig config = gguf_config(GgufFile::parse(as_span({exact.data(), exact.size()}), "mutated"));
    ASSERT_EQ(config.heads % config.kv_heads, 0);
    ASSERT_EQ(static_cast<std::size_t>(config.layers), config.window.size());
  });
}

// Few: each is a file on disk.
TEST(CheckpointMutation, EveryChangedCheckpointOpensOrIsRefused) {
  const auto dir = fresh_dir("checkpoint_mutation");
  const TinyModel model{.family = "llama",
                        .layers = 1,
                        .hidden = 8,
                        .intermediate = 8,
                        .heads = 2,
                        .kv_heads = 1,
                        .head_dim = 4,
                        .vocab = 8};
  write_tiny_gguf(dir / "m.gguf", model);
  const auto read = [](const std::filesystem::path& path) {
    const Checkpoint checkpoint = Checkpoint::open(path);
    for (const TensorEntry& tensor : checkpoint.tensors()) {
      std::size_t count = 1;
      for (const std::int64_t size : tensor.shape) count *= static_cast<std::size_t>(size);
      std::vector<float> out(count);
      const std::int64_t rows = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
      try {
        checkpoint.read(tensor.name, 0, rows, out.data());
      } catch (const Error&) {  // a tensor that nothing uses may be of a type that is not decoded
      }
    }
  };
  GgufWriter gguf = tiny_gguf_header(model);
  add_tiny_tensors(gguf, model);
  expect_read_or_refused({gguf.file()}, 1500, 300, [&](const std::string& bytes) {
    write_file(dir / "m.gguf", bytes);
    read(dir / "m.gguf");
  });
  write_tiny_model(dir, model);
  std::vector<RawTensor> tensors;
  for (const TinyTensor& t : tiny_weights(model))
    tensors.push_back({t.name, "F32", t.shape, encode_values(t.values, "F32")});
  expect_read_or_refused({safetensors_file(tensors)}, 1200, 300, [&](const std::string& bytes) {
    write_file(dir / "model.safetensors", bytes);
    read(dir);
  });
  write_tiny_model(dir, model);
  expect_read_or_refused({tiny_config(model).dump()}, 400, 300, [&](const std::string& bytes) {
    write_file(dir / "config.json", bytes);
    read(dir);
  });
}

}  // namespace
}  // namespace quantmap::testing
