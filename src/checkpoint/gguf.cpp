#include "checkpoint/gguf.hpp"

#include <fmt/format.h>

#include <limits>
#include <unordered_map>

#include "checkpoint/gguf_cursor.hpp"
#include "checkpoint/gguf_metadata.hpp"
#include "core/error.hpp"
#include "core/mapped_file.hpp"

namespace quantmap {
namespace {

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxNameBytes = 64;
constexpr std::uint32_t kMaxDimensions = 4;
// The least that a pair and a tensor info take: what a file of this size cannot hold is refused at once.
// (Nothing is allocated by a count alone, though: a file may be large.)
constexpr std::uint64_t kLeastPair = 8 + 4 + 1;
constexpr std::uint64_t kLeastTensor = 8 + 4 + 4 + 8;

std::uint32_t read_version(GgufCursor& cursor, const std::string& file) {
  const auto magic = cursor.number<std::uint32_t>("magic");
  if (std::memcmp(&magic, "GGUF", sizeof magic) != 0)
    fail_input(kBadGguf, file, "magic", "\"GGUF\"",
               quantmap::quoted(std::string_view(reinterpret_cast<const char*>(&magic), sizeof magic)));
  const auto version = cursor.number<std::uint32_t>("version");
  if (version != 0 && (version & 0xFFFFU) == 0)
    fail_input(kBadGguf, file, "byte order", "little-endian",
               fmt::format("big-endian, version {}", __builtin_bswap32(version)));
  if (version != 2 && version != 3) fail_input(kBadGguf, file, "version", "2 or 3", std::to_string(version));
  return version;
}

std::uint64_t read_count(GgufCursor& cursor, std::string_view what, std::uint64_t least,
                         const std::string& file) {
  const auto count = cursor.number<std::uint64_t>(what);
  if (count > cursor.left() / least)
    fail_input(kBadGguf, file, what, fmt::format("at most {} in this file", cursor.left() / least),
               std::to_string(count));
  return count;
}

std::uint64_t alignment_of(const GgufMetadata& metadata, const std::string& file) {
  constexpr std::string_view kKey = "general.alignment";
  const GgufValue* value = metadata.find(kKey);
  if (!value) return kDefaultAlignment;
  const std::int64_t alignment = metadata.integer(kKey, *value);  // of any integer type (B31)
  // A multiple of 8, as the format's text has it; llama.cpp wants a power of two besides.
  if (alignment <= 0 || alignment % 8 != 0 || alignment > std::numeric_limits<std::uint32_t>::max())
    fail_input(kBadGguf, file, "key \"general.alignment\"", "a multiple of 8 above 0",
               std::to_string(alignment));
  return static_cast<std::uint64_t>(alignment);
}

struct Info {
  GgufTensor tensor;
  std::uint64_t offset = 0;
};

Info read_info(GgufCursor& cursor, const std::string& file) {
  Info info;
  const std::string_view name = cursor.string("name");
  if (name.size() > kMaxNameBytes)
    fail_input(kBadGguf, file, cursor.place(), fmt::format("a name of at most {} bytes", kMaxNameBytes),
               fmt::format("{} bytes", name.size()));
  cursor.set_place("tensor " + quantmap::quoted(name));
  const auto fault = [&](std::string_view what, std::string_view expected, const std::string& found) {
    fail_input(kBadGguf, file, fmt::format("{}: {}", cursor.place(), what), expected, found);
  };
  GgufTensor& tensor = info.tensor;
  tensor.name = name;
  const auto dimensions = cursor.number<std::uint32_t>("dimension count");
  if (dimensions > kMaxDimensions) fault("dimensions", "at most 4", std::to_string(dimensions));
  tensor.shape.resize(dimensions);
  std::int64_t values = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const auto size = cursor.number<std::uint64_t>("dimension");
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
        __builtin_mul_overflow(values, static_cast<std::int64_t>(size), &values))
      fault("dimensions", "fewer than 2^63 values", "more");
    tensor.shape[dimensions - 1 - i] = static_cast<std::int64_t>(size);  // the file's first is contiguous
  }
  const auto type = cursor.number<std::uint32_t>("type");
  if (type <= static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max()))
    tensor.type = find_ggml_type(static_cast<std::int32_t>(type));
  if (!tensor.type) fault("type", "one that ggml has today", fmt::format("id {}, unknown or removed", type));
  const std::int64_t row = dimensions == 0 ? 1 : tensor.shape.back();
  if (row % tensor.type->block != 0)
    fault("row length", fmt::format("a multiple of {} for {}", tensor.type->block, tensor.type->name),
          std::to_string(row));
  if (__builtin_mul_overflow(values / tensor.type->block, std::int64_t{tensor.type->bytes}, &tensor.bytes))
    fault("dimensions", "fewer than 2^63 bytes", "more");
  info.offset = cursor.number<std::uint64_t>("offset");
  return info;
}

}  // namespace

struct GgufFile::State {
  std::optional<MappedFile> map;  // empty for a file parsed from memory
  std::string name;
  std::span<const std::byte> bytes;
  std::uint32_t version = 0;
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;
  std::unordered_map<std::string_view, std::size_t> index;  // keys point into `tensors`

  void read();
  void place_tensors(std::vector<Info> infos, std::uint64_t header_end, std::uint64_t alignment);
};

void GgufFile::State::read() {
  GgufCursor cursor(bytes, name);
  version = read_version(cursor, name);
  const std::uint64_t tensor_count = read_count(cursor, "tensor count", kLeastTensor, name);
  const std::uint64_t pair_count = read_count(cursor, "key count", kLeastPair, name);
  metadata.read(cursor, pair_count, name);
  std::vector<Info> infos;
  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    cursor.set_place(fmt::format("tensor {} of {}", i + 1, tensor_count));
    infos.push_back(read_info(cursor, name));
  }
  place_tensors(std::move(infos), cursor.position(), alignment_of(metadata, name));
}

// Tensors follow each other in the order of their infos, each padded to the alignment, as ggml requires: so a
// header that is out of step with its data shows.
void GgufFile::State::place_tensors(std::vector<Info> infos, std::uint64_t header_end,
                                    std::uint64_t alignment) {
  // Alignment need not be a power of two: a multiple, not a mask (B31).
  const auto padded = [&](std::uint64_t size) { return (size + alignment - 1) / alignment * alignment; };
  const std::uint64_t start = padded(header_end);
  std::uint64_t end = 0;  // of the data so far, relative to `start`, without its last padding
  tensors.reserve(infos.size());
  for (Info& info : infos) {
    const auto place = [&] { return "tensor " + quantmap::quoted(info.tensor.name); };
    if (info.offset != padded(end))
      fail_input(kBadGguf, name, place() + ": offset",
                 fmt::format("{}, after the tensor before", padded(end)), std::to_string(info.offset));
    const auto size = static_cast<std::uint64_t>(info.tensor.bytes);
    const std::uint64_t room = bytes.size() > start ? bytes.size() - start : 0;
    if (info.offset > room || size > room - info.offset)
      fail_input(kBadGguf, name, place() + ": data", fmt::format("{} bytes at {}", size, start + info.offset),
                 fmt::format("a file of {} bytes", bytes.size()));
    end = info.offset + size;
    // A tensor without values may lie at the very end.
    info.tensor.data = bytes.data() + start + info.offset;
    tensors.push_back(std::move(info.tensor));
  }
  if (bytes.size() > start + padded(end))
    fail_input(kBadGguf, name, "the file's end", fmt::format("{} bytes", start + padded(end)),
               std::to_string(bytes.size()));
  index.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!index.emplace(tensors[i].name, i).second)
      fail_input(kBadGguf, name, fmt::format("tensor {} occurs twice", quantmap::quoted(tensors[i].name)));
}

GgufFile::GgufFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
GgufFile::GgufFile(GgufFile&&) noexcept = default;
GgufFile& GgufFile::operator=(GgufFile&&) noexcept = default;
GgufFile::~GgufFile() = default;

GgufFile GgufFile::open(const std::filesystem::path& path) {
  auto state = std::make_unique<State>();
  state->map.emplace(path);
  state->name = state->map->name();
  state->bytes = state->map->bytes();
  state->read();
  return GgufFile(std::move(state));
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  auto state = std::make_unique<State>();
  state->name = name;
  state->bytes = bytes;
  state->read();
  return GgufFile(std::move(state));
}

const std::string& GgufFile::name() const { return state_->name; }
std::uint32_t GgufFile::version() const { return state_->version; }
bool GgufFile::has(std::string_view key) const { return state_->metadata.find(key) != nullptr; }

std::optional<std::string_view> GgufFile::string(std::string_view key) const {
  const GgufValue* value = state_->metadata.find(key);
  if (!value) return std::nullopt;
  return state_->metadata.string(key, *value);
}

std::optional<std::int64_t> GgufFile::integer(std::string_view key) const {
  const GgufValue* value = state_->metadata.find(key);
  if (!value) return std::nullopt;
  return state_->metadata.integer(key, *value);
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const GgufValue* value = state_->metadata.find(key);
  if (!value) return std::nullopt;
  return state_->metadata.number(key, *value);
}

std::optional<bool> GgufFile::boolean(std::string_view key) const {
  const GgufValue* value = state_->metadata.find(key);
  if (!value) return std::nullopt;
  return state_->metadata.boolean(key, *value);
}

std::vector<std::string_view> GgufFile::strings(std::string_view key) const {
  return state_->metadata.strings(key);
}
std::vector<float> GgufFile::floats(std::string_view key) const { return state_->metadata.floats(key); }
std::vector<std::int64_t> GgufFile::integers(std::string_view key) const {
  return state_->metadata.integers(key);
}
std::vector<bool> GgufFile::booleans(std::string_view key) const { return state_->metadata.booleans(key); }

bool GgufFile::is_array(std::string_view key) const {
  const GgufValue* value = state_->metadata.find(key);
  return value && value->type == GgufType::array;
}

std::vector<std::string_view> GgufFile::keys() const { return state_->metadata.keys(); }
std::span<const GgufTensor> GgufFile::tensors() const { return state_->tensors; }
std::span<const std::byte> GgufFile::bytes() const { return state_->bytes; }

const GgufTensor* GgufFile::find(std::string_view tensor_name) const {
  const auto found = state_->index.find(tensor_name);
  return found == state_->index.end() ? nullptr : &state_->tensors[found->second];
}

void GgufFile::release(const std::byte* begin, std::int64_t size) const {
  if (!state_->map) return;
  const auto first = static_cast<std::size_t>(begin - state_->bytes.data());
  state_->map->release(first, first + static_cast<std::size_t>(size));
}

}  // namespace quantmap
