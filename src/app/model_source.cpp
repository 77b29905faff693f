#include "app/model_source.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/gguf.hpp"
#include "checkpoint/gguf_model.hpp"
#include "checkpoint/json.hpp"
#include "core/error.hpp"
#include "core/mapped_file.hpp"
#include "map/families.hpp"
#include "map/map_from_contents.hpp"

namespace quantmap {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

nlohmann::json read_json(const fs::path& path) {
  const MappedFile file(path);
  return parse_json(file.text(), "bad config", file.name());
}

// Code bits that the configuration says for packed integers, where all groups agree.
int bits_said(const QuantConfig& config) {
  int bits = 0;
  for (const QuantGroup& group : config.groups) {
    if (!group.weights) continue;
    if (bits != 0 && bits != group.weights->bits) return 0;
    bits = group.weights->bits;
  }
  return bits;
}

void map_of_config(ModelSource& source) {
  if (is_known_family(source.config)) {
    source.map = map_from_config(source.config, source.path);
    return;
  }
  try {
    map_from_config(source.config, source.path);
  } catch (const Error& error) {
    source.why_no_map = error.what();
  }
  if (!source.contents) return;
  source.map = map_from_contents(*source.contents, source.path);
  source.warnings.push_back(source.why_no_map);
}

void open_directory(ModelSource& source, bool always_files) {
  const fs::path folder = source.path;
  const fs::path config = folder / "config.json";
  if (is_there(config)) {
    source.config = read_json(config);
    source.quantization = read_quant_config_of_folder(folder, source.config);
  } else {
    if (!is_there(folder / "model.safetensors") && !is_there(folder / "model.safetensors.index.json"))
      fail_input("cannot open model", source.path, "no config.json and no tensor file");
    source.quantization = read_quant_config_of_folder(folder, nlohmann::json::object());
    source.warnings.push_back("there is no config.json");
  }
  const bool files =
      is_there(folder / "model.safetensors") || is_there(folder / "model.safetensors.index.json");
  if (files && (always_files || !is_known_family(source.config)))
    source.contents = read_contents(folder, bits_said(source.quantization));
  map_of_config(source);
}

// Attention as the metadata say it, for architectures whose layers are all alike.
void add_gguf_caches(ModelSource& source) {
  try {
    const ModelConfig config = gguf_config(GgufFile::open(source.path));
    source.map->model_type = config.model_type;
    source.map->max_position = config.max_position;
    for (const std::int64_t window : config.window) {
      CacheLayer layer;
      layer.rows = config.kv_heads;
      layer.key_width = layer.value_width = config.head_dim;
      layer.window = window;
      layer.prefill_pair_flops = layer.decode_pair_flops = 4.0 * config.heads * config.head_dim;
      source.map->caches.push_back(layer);
    }
  } catch (const Error& error) {
    source.warnings.push_back(fmt::format("the KV cache is not known: {}", error.what()));
  }
}

}  // namespace

ModelSource open_model_source(const std::string& path, bool always_files) {
  ModelSource source;
  source.path = path;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) fail_input("cannot open model", path, "no such file or directory");
  if (fs::is_directory(path, ignored)) {
    open_directory(source, always_files);
  } else if (path.ends_with(".gguf")) {
    source.contents = read_gguf_contents(path);
    source.map = map_from_contents(*source.contents, path);
    add_gguf_caches(source);
  } else if (path.ends_with(".json")) {
    nlohmann::json document = read_json(path);
    source.quantization = read_quant_config(document, fs::path(path).filename().string());
    if (is_model_config(document)) {
      source.config = std::move(document);
      map_of_config(source);
    } else {
      if (!document.is_object())
        fail_input("bad config", path, "the file", "a JSON object", describe(document));
      source.why_no_map = fmt::format(
          "bad config: {}: it says how a model is quantized, not what it is (expected "
          "config.json, or a directory with it)",
          path);
    }
  } else {
    fail_input("cannot open model", path, "not a model", "a directory, a .gguf file or a .json file",
               "another file");
  }
  return source;
}

}  // namespace quantmap
