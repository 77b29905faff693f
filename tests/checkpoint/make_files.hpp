// Small checkpoints made by tests: writers for safetensors and GGUF that can also write what is wrong, and
// tiny models of every family with seeded weights. Other suites include it for their models.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/config.hpp"
#include "checkpoint/expected_tensors.hpp"
#include "core/random.hpp"
#include "formats/bf16.hpp"

namespace quantmap::testing {

inline void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

inline std::span<const std::byte> as_span(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// The bytes of a plain value, little-endian.
template <class T>
std::string raw(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

template <class T>
std::string raw_array(const std::vector<T>& values) {
  std::string out(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

// `F32` or `BF16` (rounded).
inline std::string encode_values(const std::vector<float>& values, std::string_view dtype) {
  if (dtype == "F32") return raw_array(values);
  if (dtype != "BF16") throw std::runtime_error("encode_values: F32 or BF16");
  std::vector<std::uint16_t> codes;
  for (const float value : values) codes.push_back(bf16_from_float(value));
  return raw_array(codes);
}

// ---- safetensors

struct RawTensor {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

inline std::string safetensors_file(std::string_view header, std::string_view buffer = "") {
  return raw<std::uint64_t>(header.size()) + std::string(header) + std::string(buffer);
}

// A right file: tensors in the order given, header padded to 8 bytes.
inline std::string safetensors_file(const std::vector<RawTensor>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::string buffer;
  for (const RawTensor& tensor : tensors) {
    const std::size_t begin = buffer.size();
    buffer += tensor.bytes;
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, buffer.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return safetensors_file(text, buffer);
}

// ---- GGUF

class GgufWriter {
 public:
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  // what is written; `general.alignment` is a key like any other

  // One pair: type as in the format, value in raw bytes.
  void pair(std::string_view key, std::uint32_t type, std::string_view value) {
    pairs_ += text(key) + raw(type) + std::string(value);
    ++pair_count;
  }
  void u32(std::string_view key, std::uint32_t value) { pair(key, 4, raw(value)); }
  void f32(std::string_view key, float value) { pair(key, 6, raw(value)); }
  void boolean(std::string_view key, bool value) { pair(key, 7, std::string(1, value ? '\1' : '\0')); }
  void string(std::string_view key, std::string_view value) { pair(key, 8, text(value)); }
  void array(std::string_view key, std::uint32_t item, std::uint64_t count, std::string_view items) {
    pair(key, 9, raw(item) + raw(count) + std::string(items));
  }
  void strings(std::string_view key, const std::vector<std::string>& values) {
    std::string items;
    for (const std::string& value : values) items += text(value);
    array(key, 8, values.size(), items);
  }
  // `shape` as in HF, [out][in].
  void tensor(std::string_view name, std::uint32_t type, const std::vector<std::int64_t>& shape,
              std::string_view bytes) {
    tensor_at(name, type, shape, bytes, data_.size());
  }
  void tensor_at(std::string_view name, std::uint32_t type, const std::vector<std::int64_t>& shape,
                 std::string_view bytes, std::uint64_t offset) {
    infos_ += text(name) + raw(static_cast<std::uint32_t>(shape.size()));
    for (auto size = shape.rbegin(); size != shape.rend(); ++size)
      infos_ += raw(static_cast<std::uint64_t>(*size));
    infos_ += raw(type) + raw(offset);
    data_ += bytes;
    data_.resize(padded(data_.size()), '\0');
    ++tensor_count;
  }

  std::uint64_t pair_count = 0, tensor_count = 0;  // as written in the header

  std::string header() const {
    return magic + raw(version) + raw(tensor_count) + raw(pair_count) + pairs_ + infos_;
  }
  std::string file() const {
    std::string out = header();
    out.resize(padded(out.size()), '\0');
    return out + data_;
  }
  static std::string text(std::string_view value) {
    return raw<std::uint64_t>(value.size()) + std::string(value);
  }

 private:
  std::size_t padded(std::size_t size) const { return (size + alignment - 1) / alignment * alignment; }

  std::string pairs_, infos_, data_;
};

// ---- tiny models

struct TinyModel {
  std::string family = "qwen3";  // model_type
  int layers = 2, hidden = 32, intermediate = 48, heads = 4, kv_heads = 2, head_dim = 16, vocab = 64;
  int max_position = 512;
  bool tied = false;
  std::string dtype = "F32";  // of every tensor: F32 or BF16
  std::uint64_t seed = 1;
  int shards = 1;                                    // more than 1: an index and that many files
  nlohmann::json config = nlohmann::json::object();  // merged into config.json (JSON merge patch)
};

inline nlohmann::json tiny_config(const TinyModel& model) {
  nlohmann::json config = {{"model_type", model.family},
                           {"hidden_size", model.hidden},
                           {"intermediate_size", model.intermediate},
                           {"num_hidden_layers", model.layers},
                           {"num_attention_heads", model.heads},
                           {"num_key_value_heads", model.kv_heads},
                           {"head_dim", model.head_dim},
                           {"vocab_size", model.vocab},
                           {"max_position_embeddings", model.max_position},
                           {"rms_norm_eps", 1e-6},
                           {"rope_theta", 10000.0},
                           {"sliding_window", nullptr},
                           {"tie_word_embeddings", model.tied}};
  config.merge_patch(model.config);
  return config;
}

struct TinyTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;  // as the checkpoint gives them back: rounded where it stores BF16
};

// Norms near 1, biases of a tenth, matrices that keep a vector's size; from the model's seed.
inline std::vector<TinyTensor> tiny_weights(const TinyModel& model) {
  std::vector<TinyTensor> out;
  std::uint64_t seed = model.seed * 1000;
  for (ExpectedTensor& tensor : expected_tensors(parse_config(tiny_config(model), "tiny"))) {
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= size;
    std::vector<float> values(static_cast<std::size_t>(count));
    fill_gaussian(++seed, values.data(), count);
    const bool matrix = tensor.shape.size() == 2;
    const bool norm = !matrix && tensor.name.ends_with("weight");
    const float scale = matrix ? 1.0F / std::sqrt(static_cast<float>(tensor.shape[1])) : 0.1F;
    for (float& value : values) {
      value = value * scale + (norm ? 1.0F : 0.0F);
      if (model.dtype == "BF16") value = round_to_bf16(value);
    }
    out.push_back({std::move(tensor.name), std::move(tensor.shape), std::move(values)});
  }
  return out;
}

// An HF directory: config.json and model.safetensors, or shards with their index.
inline void write_tiny_model(const std::filesystem::path& directory, const TinyModel& model = {}) {
  std::filesystem::create_directories(directory);
  nlohmann::json config = tiny_config(model);
  write_file(directory / "config.json", config.dump(2));
  std::vector<std::vector<RawTensor>> shards(static_cast<std::size_t>(model.shards));
  nlohmann::json weight_map = nlohmann::json::object();
  std::size_t next = 0;
  const auto shard_name = [&](std::size_t shard) {
    return "model-0000" + std::to_string(shard + 1) + "-of-0000" + std::to_string(model.shards) +
           ".safetensors";
  };
  for (const TinyTensor& tensor : tiny_weights(model)) {
    weight_map[tensor.name] = shard_name(next);
    shards[next].push_back(
        {tensor.name, model.dtype, tensor.shape, encode_values(tensor.values, model.dtype)});
    next = (next + 1) % shards.size();
  }
  if (model.shards == 1) return write_file(directory / "model.safetensors", safetensors_file(shards[0]));
  for (std::size_t i = 0; i < shards.size(); ++i)
    write_file(directory / shard_name(i), safetensors_file(shards[i]));
  write_file(directory / "model.safetensors.index.json",
             nlohmann::json{{"metadata", nlohmann::json::object()}, {"weight_map", weight_map}}.dump(2));
}

// The GGUF name of an HF tensor of these families.
inline std::string gguf_name(std::string name) {
  const auto replace = [&](std::string_view from, std::string_view to) {
    if (const std::size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
  };
  replace("model.layers.", "blk.");
  replace("model.embed_tokens", "token_embd");
  replace("model.norm", "output_norm");
  replace("lm_head", "output");
  replace("input_layernorm", "attn_norm");
  replace("post_attention_layernorm", "ffn_norm");
  for (const char* part : {"q", "k", "v"})
    replace("self_attn." + std::string(part) + "_proj", "attn_" + std::string(part));
  replace("self_attn.q_norm", "attn_q_norm");
  replace("self_attn.k_norm", "attn_k_norm");
  replace("self_attn.o_proj", "attn_output");
  for (const char* part : {"gate", "up", "down"})
    replace("mlp." + std::string(part) + "_proj", "ffn_" + std::string(part));
  return name;
}

// llama.cpp's converter: within each head, row j of the first half and row j of the second become neighbours.
inline std::vector<float> interleave_rows(const std::vector<float>& values, std::int64_t head_dim,
                                          std::int64_t columns) {
  std::vector<float> out;
  const auto rows = static_cast<std::int64_t>(values.size()) / columns;
  for (std::int64_t head = 0; head < rows; head += head_dim)
    for (std::int64_t j = 0; j < head_dim / 2; ++j)
      for (const std::int64_t row : {head + j, head + head_dim / 2 + j})
        out.insert(out.end(), values.begin() + row * columns, values.begin() + (row + 1) * columns);
  return out;
}

// Metadata of the same model as GGUF, without tensors and vocabulary; RoPE default only.
inline GgufWriter tiny_gguf_header(const TinyModel& model) {
  GgufWriter gguf;
  const std::string arch = model.family == "mistral" ? "llama" : model.family;
  const auto key = [&](std::string_view name) { return arch + "." + std::string(name); };
  const auto u32 = [&](std::string_view name, int value) {
    gguf.u32(key(name), static_cast<std::uint32_t>(value));
  };
  gguf.string("general.architecture", arch);
  u32("block_count", model.layers);
  u32("context_length", model.max_position);
  u32("embedding_length", model.hidden);
  u32("feed_forward_length", model.intermediate);
  u32("attention.head_count", model.heads);
  u32("attention.head_count_kv", model.kv_heads);
  u32("attention.key_length", model.head_dim);
  u32("attention.value_length", model.head_dim);
  u32("rope.dimension_count", model.head_dim);
  gguf.f32(key("rope.freq_base"), 10000.0F);
  gguf.f32(key("attention.layer_norm_rms_epsilon"), 1e-6F);
  return gguf;
}

inline void add_tiny_tensors(GgufWriter& gguf, const TinyModel& model) {
  const bool interleaved = model.family == "llama" || model.family == "mistral";
  for (TinyTensor& tensor : tiny_weights(model)) {
    const std::int64_t columns = tensor.shape.size() == 2 ? tensor.shape[1] : 1;
    const bool turned =
        tensor.name.find("q_proj") != std::string::npos || tensor.name.find("k_proj") != std::string::npos;
    if (interleaved && turned) tensor.values = interleave_rows(tensor.values, model.head_dim, columns);
    // Vectors stay F32, as llama.cpp's converter writes them.
    const bool bf16 = model.dtype == "BF16" && tensor.shape.size() == 2;
    gguf.tensor(gguf_name(tensor.name), bf16 ? 30 : 0, tensor.shape,
                encode_values(tensor.values, bf16 ? "BF16" : "F32"));
  }
}

// The same weights as write_tiny_model's as a .gguf file.
inline void write_tiny_gguf(const std::filesystem::path& path, const TinyModel& model = {}) {
  GgufWriter gguf = tiny_gguf_header(model);
  add_tiny_tensors(gguf, model);
  write_file(path, gguf.file());
}

}  // namespace quantmap::testing
