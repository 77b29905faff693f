#include "checkpoint/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "checkpoint/expected_tensors.hpp"
#include "checkpoint/gguf.hpp"
#include "checkpoint/gguf_model.hpp"
#include "checkpoint/hf_directory.hpp"
#include "checkpoint/json.hpp"
#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "core/mapped_file.hpp"
#include "core/parallel.hpp"
#include "core/simd.hpp"
#include "formats/bf16.hpp"
#include "formats/ggml_blocks.hpp"

namespace quantmap {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhat = "bad checkpoint";

// Where a tensor's values are and how they become FP32 in HF order.
struct Source {
  const std::byte* data = nullptr;
  const GgmlType* type = nullptr;     // null: not decoded
  const std::string* file = nullptr;  // for messages
  std::size_t shard = 0;              // of an HF directory
  bool interleaved = false;           // rows of q and k in the order of Llama's GGUF files
  bool rounded = false;               // decoded values are rounded to BF16
};

// The plain types of safetensors and GGUF are the same bytes: one table decodes both.
const GgmlType* plain_type(std::string_view dtype) {
  constexpr std::int32_t kF32 = 0, kF16 = 1, kBf16 = 30;
  if (dtype == "F32") return find_ggml_type(kF32);
  if (dtype == "F16") return find_ggml_type(kF16);
  if (dtype == "BF16") return find_ggml_type(kBf16);
  return nullptr;
}

bool is_plain(const GgmlType& type) { return type.block == 1; }

QUANTMAP_SIMD void round_all_to_bf16(float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = round_to_bf16(values[i]);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

std::int64_t row_length(const TensorEntry& entry) { return entry.shape.empty() ? 1 : entry.shape.back(); }

std::int64_t row_count(const TensorEntry& entry) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < entry.shape.size(); ++i) rows *= entry.shape[i];
  return rows;
}

bool is_gguf(const fs::path& path) {
  if (path.extension() == ".gguf") return true;
  const MappedFile file(path);  // named otherwise, as caches do
  return file.text().starts_with("GGUF");
}

}  // namespace

struct Checkpoint::State {
  fs::path path;
  ModelConfig config;
  std::string config_sha256;  // of an HF directory
  HfDirectory hf;
  std::optional<GgufFile> gguf;
  std::vector<TensorEntry> tensors;
  std::vector<Source> sources;                              // of the tensors
  std::unordered_map<std::string_view, std::size_t> index;  // keys point into `tensors`
  std::vector<std::string> warnings;

  void open_directory();
  void open_gguf();
  void add(TensorEntry entry, const Source& source);
  void build_index();
  void check_tensors();
  std::size_t find(std::string_view name) const;
  void release(const Source& source, const std::byte* begin, std::int64_t size) const;
  std::string hash(const std::string& file, std::span<const std::byte> bytes, const Source& source) const;
};

void Checkpoint::State::open_directory() {
  std::error_code ignored;
  if (!fs::exists(path / "config.json", ignored))
    fail_input("cannot open model", path.string(), "no configuration", "config.json", "no such file");
  {
    const MappedFile file(path / "config.json");
    config_sha256 = sha256(file.text());
    config = parse_config(parse_json(file.text(), "bad config", file.name()), file.name());
  }
  hf = open_hf_directory(path);
  warnings = hf.warnings;
  for (const HfTensor& tensor : hf.tensors) {
    const SafetensorsEntry& entry = *tensor.entry;
    add({entry.name, std::string(entry.dtype), entry.shape, entry.bytes},
        {.data = entry.data,
         .type = plain_type(entry.dtype),
         .file = &hf.shards[tensor.shard].name(),
         .shard = tensor.shard});
  }
  build_index();
  if (!config.tied_embeddings && !index.contains("lm_head.weight")) {
    config.tied_embeddings = true;
    warnings.push_back(
        "no lm_head.weight: the head is taken from the embeddings, though tie_word_embeddings is not true");
  }
}

void Checkpoint::State::open_gguf() {
  gguf.emplace(GgufFile::open(path));
  config = gguf_config(*gguf);
  for (const GgufTensor& tensor : gguf->tensors()) {
    TensorEntry entry{hf_tensor_name(tensor.name), std::string(tensor.type->name), tensor.shape,
                      tensor.bytes};
    const bool interleaved = has_interleaved_rows(config, entry.name);
    add(std::move(entry), {.data = tensor.data,
                           .type = tensor.type->decoded ? tensor.type : nullptr,
                           .file = &gguf->name(),
                           .interleaved = interleaved,
                           .rounded = !is_plain(*tensor.type)});
  }
  build_index();
}

void Checkpoint::State::add(TensorEntry entry, const Source& source) {
  tensors.push_back(std::move(entry));
  sources.push_back(source);
}

void Checkpoint::State::build_index() {
  index.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!index.emplace(tensors[i].name, i).second)
      fail_input(kWhat, *sources[i].file,
                 fmt::format("tensor {} occurs twice", quantmap::quoted(tensors[i].name)));
}

// Every tensor of the architecture is there, of the right shape and of a type that can be decoded; what is
// left is reported once.
void Checkpoint::State::check_tensors() {
  std::unordered_set<std::string_view> used;
  const std::vector<ExpectedTensor> expected = expected_tensors(config);
  for (const ExpectedTensor& tensor : expected) {
    const auto found = index.find(tensor.name);
    const std::string place = "tensor " + tensor.name;
    if (found == index.end())
      fail_input(kWhat, path.string(), place, shape_text(tensor.shape), "no such tensor");
    const TensorEntry& entry = tensors[found->second];
    const Source& source = sources[found->second];
    if (entry.shape != tensor.shape)
      fail_input(kWhat, *source.file, place, shape_text(tensor.shape), shape_text(entry.shape));
    if (!source.type)
      fail_input(kWhat, *source.file, place, gguf ? "a type that is decoded" : "F32, F16 or BF16",
                 entry.dtype);
    used.insert(entry.name);
  }
  constexpr std::size_t kMost = 20;
  std::string names;
  std::size_t unused = 0;
  for (const TensorEntry& entry : tensors) {
    if (used.contains(entry.name) || is_known_buffer(entry.name)) continue;
    if (gguf && entry.name == "rope_freqs.weight") continue;  // read into the configuration
    if (++unused <= kMost)
      names += fmt::format("{}{}", unused == 1 ? "" : ", ", quantmap::quoted(entry.name));
  }
  if (unused == 0) return;
  if (unused > kMost) names += fmt::format(" and {} more", unused - kMost);
  warnings.push_back(
      fmt::format("{} {} that no layer uses: {}", unused, unused == 1 ? "tensor" : "tensors", names));
}

std::size_t Checkpoint::State::find(std::string_view name) const {
  const auto found = index.find(name);
  if (found == index.end())
    fail_input(kWhat, path.string(), "tensor " + quantmap::quoted(name), "it in the checkpoint",
               "no such tensor");
  return found->second;
}

void Checkpoint::State::release(const Source& source, const std::byte* begin, std::int64_t size) const {
  if (gguf) return gguf->release(begin, size);
  hf.shards[source.shard].release(begin, size);
}

// `HEX  NAME`, as sha256sum prints it; pages are given back as it goes.
std::string Checkpoint::State::hash(const std::string& file, std::span<const std::byte> bytes,
                                    const Source& source) const {
  constexpr std::size_t kChunk = std::size_t{32} << 20;
  Fingerprint fingerprint;
  for (std::size_t at = 0; at < bytes.size(); at += kChunk) {
    const auto chunk = bytes.subspan(at, std::min(kChunk, bytes.size() - at));
    fingerprint.add(chunk.data(), chunk.size());
    release(source, chunk.data(), static_cast<std::int64_t>(chunk.size()));
  }
  return fmt::format("{}  {}\n", fingerprint.hex(), fs::path(file).filename().string());
}

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

Checkpoint Checkpoint::open(const fs::path& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  std::error_code ignored;  // a path that cannot be looked at fails when it is opened
  if (fs::is_directory(path, ignored)) {
    state->open_directory();
  } else if (is_gguf(path)) {
    state->open_gguf();
  } else {
    fail_input("cannot open model", path.string(), "not a checkpoint",
               "a directory with config.json or a .gguf file", "another file");
  }
  state->check_tensors();
  return Checkpoint(std::move(state));
}

const fs::path& Checkpoint::path() const { return state_->path; }
const ModelConfig& Checkpoint::config() const { return state_->config; }
std::span<const TensorEntry> Checkpoint::tensors() const { return state_->tensors; }
std::span<const std::string> Checkpoint::warnings() const { return state_->warnings; }

const TensorEntry* Checkpoint::find(std::string_view name) const {
  const auto found = state_->index.find(name);
  return found == state_->index.end() ? nullptr : &state_->tensors[found->second];
}

void Checkpoint::read(std::string_view name, std::int64_t row_begin, std::int64_t row_end, float* out) const {
  const std::size_t position = state_->find(name);
  const TensorEntry& entry = state_->tensors[position];
  const Source& source = state_->sources[position];
  if (!source.type)
    fail_input(kWhat, *source.file, "tensor " + quantmap::quoted(name), "a type that is decoded",
               entry.dtype);
  const std::int64_t rows = row_count(entry);
  const std::int64_t columns = row_length(entry);
  if (row_begin < 0 || row_end < row_begin || row_end > rows)
    fail("cannot read tensor", *source.file,
         fmt::format("{}: rows {} to {} of {}", quantmap::quoted(name), row_begin, row_end, rows));
  const GgmlType& type = *source.type;
  const std::int64_t row_bytes = columns / type.block * type.bytes;
  const std::int64_t count = (row_end - row_begin) * columns;
  if (count == 0) return;
  const std::int64_t head_dim = state_->config.head_dim;
  if (!source.interleaved) {
    decode_ggml(type, source.data + row_begin * row_bytes, count, out);
  } else if (entry.shape.size() == 1) {  // a bias: its values are the rows
    std::vector<float> stored(static_cast<std::size_t>(count));
    decode_ggml(type, source.data, count, stored.data());
    for (std::int64_t i = 0; i < count; ++i)
      out[i] = stored[static_cast<std::size_t>(interleaved_row(i, head_dim))];
  } else {
    for (std::int64_t row = row_begin; row < row_end; ++row)
      decode_ggml(type, source.data + interleaved_row(row, head_dim) * row_bytes, columns,
                  out + (row - row_begin) * columns);
  }
  if (source.rounded) round_all_to_bf16(out, count);
}

void Checkpoint::release(std::string_view name) const {
  const std::size_t position = state_->find(name);
  const Source& source = state_->sources[position];
  state_->release(source, source.data, state_->tensors[position].bytes);
}

std::string Checkpoint::fingerprint() const {
  if (state_->gguf) {
    const std::string line = state_->hash(state_->gguf->name(), state_->gguf->bytes(), {});
    return line.substr(0, line.find(' '));
  }
  const auto& shards = state_->hf.shards;
  std::vector<std::string> lines(shards.size());
  parallel_for(static_cast<std::int64_t>(shards.size()), [&](std::int64_t i, int) {
    const auto shard = static_cast<std::size_t>(i);
    lines[shard] = state_->hash(shards[shard].name(), shards[shard].bytes(), {.shard = shard});
  });
  return sha256(fmt::format("{}  config.json\n{}", state_->config_sha256, fmt::join(lines, "")));
}

std::int64_t Checkpoint::file_bytes() const {
  if (state_->gguf) return static_cast<std::int64_t>(state_->gguf->bytes().size());
  std::int64_t bytes = 0;
  for (const SafetensorsFile& shard : state_->hf.shards)
    bytes += static_cast<std::int64_t>(shard.bytes().size());
  return bytes;
}

}  // namespace quantmap
