#include "checkpoint/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <unordered_map>

#include "checkpoint/safetensors_header.hpp"
#include "core/error.hpp"
#include "core/mapped_file.hpp"

namespace quantmap {
namespace {

constexpr std::string_view kWhat = "bad safetensors file";
constexpr std::uint64_t kMaxHeader = 100'000'000;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

// Bytes that the entry's shape needs; throws where they are not a whole number or do not fit.
std::int64_t needed_bytes(const SafetensorsInfo& info, const std::string& file) {
  const auto place = [&] {
    return fmt::format("tensor {}: shape {}", quantmap::quoted(info.name), shape_text(info.shape));
  };
  std::int64_t values = 1;
  std::int64_t bits = 0;
  for (const std::int64_t size : info.shape)
    if (__builtin_mul_overflow(values, size, &values))
      fail_input(kWhat, file, place(), "fewer than 2^63 values", "more");
  if (__builtin_mul_overflow(values, static_cast<std::int64_t>(info.dtype->bits), &bits))
    fail_input(kWhat, file, place(), "fewer than 2^63 bits", "more");
  // Two F4 values share a byte and a row starts at one: its length is even (S17).
  if (info.dtype->name == "F4" && !info.shape.empty() && info.shape.back() % 2 != 0)
    fail_input(kWhat, file, place(), "an even last dimension for F4", std::to_string(info.shape.back()));
  if (bits % 8 != 0)
    fail_input(kWhat, file, place(), "whole bytes", fmt::format("{} bits of {}", bits, info.dtype->name));
  return bits / 8;
}

}  // namespace

struct SafetensorsFile::State {
  std::optional<MappedFile> map;  // empty for a file parsed from memory
  std::string name;
  std::span<const std::byte> bytes;
  std::vector<SafetensorsEntry> tensors;
  std::unordered_map<std::string_view, std::size_t> index;  // keys point into `tensors`
  std::deque<std::string> unknown_dtypes;                   // entries point into it

  void read(bool keep_unknown);
};

void SafetensorsFile::State::read(bool keep_unknown) {
  std::uint64_t header = 0;
  if (bytes.size() < sizeof header)
    fail_input(kWhat, name, "header length", "8 bytes", fmt::format("a file of {} bytes", bytes.size()));
  std::memcpy(&header, bytes.data(), sizeof header);  // little-endian, as every supported machine is
  if (header > kMaxHeader)
    fail_input(kWhat, name, "header length", "at most 100000000", std::to_string(header));
  if (header > bytes.size() - sizeof header)
    fail_input(kWhat, name, "header length",
               fmt::format("at most {} (the file)", bytes.size() - sizeof header), std::to_string(header));
  const std::string_view json(reinterpret_cast<const char*>(bytes.data()) + sizeof header, header);
  const auto buffer = bytes.subspan(sizeof header + header);
  const auto buffer_size = static_cast<std::int64_t>(buffer.size());

  std::vector<SafetensorsInfo> infos = parse_safetensors_header(json, name, keep_unknown);
  // By offset; tensors without values may share one and keep the header's order.
  std::stable_sort(infos.begin(), infos.end(),
                   [](const auto& a, const auto& b) { return a.offsets < b.offsets; });
  std::int64_t end = 0;
  tensors.reserve(infos.size());
  for (SafetensorsInfo& info : infos) {
    const auto place = [&] { return fmt::format("tensor {}: data_offsets", quantmap::quoted(info.name)); };
    const std::int64_t first = info.offsets[0];
    const std::int64_t last = info.offsets[1];
    const auto found = [&] { return fmt::format("[{},{}]", first, last); };
    if (last < first) fail_input(kWhat, name, place(), "an end after the begin", found());
    if (last > buffer_size)
      fail_input(kWhat, name, place(), fmt::format("an end within the buffer of {} bytes", buffer_size),
                 found());
    if (first != end)
      fail_input(kWhat, name, place(), fmt::format("a begin at {}, where the tensor before ends", end),
                 found() + (first > end ? ", a hole" : ", an overlap"));
    if (!info.dtype) {
      unknown_dtypes.push_back(std::move(info.unknown_dtype));
    } else if (const std::int64_t bytes_needed = needed_bytes(info, name); last - first != bytes_needed) {
      fail_input(kWhat, name,
                 fmt::format("tensor {}: {} {}", quantmap::quoted(info.name), info.dtype->name,
                             shape_text(info.shape)),
                 fmt::format("{} bytes", bytes_needed), fmt::format("{} in data_offsets", last - first));
    }
    end = last;
    tensors.push_back({.name = std::move(info.name),
                       .dtype = info.dtype ? info.dtype->name : std::string_view(unknown_dtypes.back()),
                       .known_dtype = info.dtype != nullptr,
                       .shape = std::move(info.shape),
                       .data = buffer.data() + first,
                       .bytes = last - first});
  }
  if (end != buffer_size)
    fail_input(kWhat, name, "the file's end", fmt::format("{} bytes of data", end),
               std::to_string(buffer_size));
  index.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) index.emplace(tensors[i].name, i);
}

SafetensorsFile::SafetensorsFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path, bool keep_unknown) {
  auto state = std::make_unique<State>();
  state->map.emplace(path);
  state->name = state->map->name();
  state->bytes = state->map->bytes();
  state->read(keep_unknown);
  return SafetensorsFile(std::move(state));
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  auto state = std::make_unique<State>();
  state->name = name;
  state->bytes = bytes;
  state->read(false);
  return SafetensorsFile(std::move(state));
}

const std::string& SafetensorsFile::name() const { return state_->name; }
std::span<const SafetensorsEntry> SafetensorsFile::tensors() const { return state_->tensors; }
std::span<const std::byte> SafetensorsFile::bytes() const { return state_->bytes; }

const SafetensorsEntry* SafetensorsFile::find(std::string_view tensor_name) const {
  const auto found = state_->index.find(tensor_name);
  return found == state_->index.end() ? nullptr : &state_->tensors[found->second];
}

void SafetensorsFile::release(const std::byte* begin, std::int64_t size) const {
  if (!state_->map) return;
  const auto first = static_cast<std::size_t>(begin - state_->bytes.data());
  state_->map->release(first, first + static_cast<std::size_t>(size));
}

}  // namespace quantmap
