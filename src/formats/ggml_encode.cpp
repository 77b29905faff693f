#include "formats/ggml_encode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/error.hpp"
#include "formats/fp16.hpp"
#include "formats/ggml_encoders.hpp"

namespace quantmap {
namespace {

const GgmlType& named(std::string_view name) {
  const auto types = ggml_types();
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const GgmlType& t) { return t.name == name; });
  if (found == types.end()) throw std::logic_error("GGUF type " + std::string(name));
  return *found;
}

template <class Block>
void mark_not_finite(Block& block) {
  block = {};
  block.d = 0x7E00;  // NaN
}
void mark_not_finite(ggml::BlockMxfp4& block) {
  block = {};
  block.e = 0xFF;
}

template <class Block, int kValues>
void encode_blocks(const float* x, std::int64_t values, std::byte* out) {
  for (std::int64_t i = 0; i < values; i += kValues, out += sizeof(Block)) {
    Block block;
    const bool finite = std::all_of(x + i, x + i + kValues, [](float v) { return std::isfinite(v); });
    if constexpr (!std::is_same_v<Block, ggml::BlockNvfp4>) {
      if (!finite) mark_not_finite(block);
    }
    if (finite || std::is_same_v<Block, ggml::BlockNvfp4>) ggml::encode_block(x + i, block);
    std::memcpy(out, &block, sizeof block);
  }
}

void encode_f16(const float* x, std::int64_t values, std::byte* out) {
  for (std::int64_t i = 0; i < values; ++i) {
    const std::uint16_t bits = fp16_from_float(x[i]);
    std::memcpy(out + 2 * i, &bits, sizeof bits);
  }
}

struct Encoder {
  std::int32_t id;
  void (*encode)(const float*, std::int64_t, std::byte*);
};
constexpr Encoder kEncoders[] = {
    {1, encode_f16},
    {2, encode_blocks<ggml::BlockQ4_0, 32>},
    {3, encode_blocks<ggml::BlockQ4_1, 32>},
    {6, encode_blocks<ggml::BlockQ5_0, 32>},
    {7, encode_blocks<ggml::BlockQ5_1, 32>},
    {8, encode_blocks<ggml::BlockQ8_0, 32>},
    {10, encode_blocks<ggml::BlockQ2K, 256>},
    {11, encode_blocks<ggml::BlockQ3K, 256>},
    {12, encode_blocks<ggml::BlockQ4K, 256>},
    {13, encode_blocks<ggml::BlockQ5K, 256>},
    {14, encode_blocks<ggml::BlockQ6K, 256>},
    {20, encode_blocks<ggml::BlockIq4Nl, 32>},
    {23, encode_blocks<ggml::BlockIq4Xs, 256>},
    {34, encode_blocks<ggml::BlockTq1, 256>},
    {35, encode_blocks<ggml::BlockTq2, 256>},
    {39, encode_blocks<ggml::BlockMxfp4, 32>},
    {40, encode_blocks<ggml::BlockNvfp4, 64>},
    {41, encode_blocks<ggml::BlockQ1_0, 128>},
    {42, encode_blocks<ggml::BlockQ2_0, 64>},
};

// What llama-quantize takes where a row is not whole blocks.
struct Fallback {
  std::string_view type, instead;
};
constexpr Fallback kFallbacks[] = {
    {"Q2_K", "Q4_0"}, {"Q3_K", "Q4_0"}, {"TQ1_0", "Q4_0"}, {"TQ2_0", "Q4_0"},    {"Q2_0", "Q4_0"},
    {"Q4_K", "Q5_0"}, {"Q5_K", "Q5_1"}, {"Q6_K", "Q8_0"},  {"IQ4_XS", "IQ4_NL"},
};

}  // namespace

const GgmlType& ggml_type_of(const Format& format) {
  std::string_view id = format.id;
  if (id.starts_with("ggml_")) id.remove_prefix(5);
  std::string name(id);
  for (char& c : name) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return named(name);
}

const GgmlType& ggml_stored_type(const Format& format, std::int64_t cols) {
  const GgmlType& own = ggml_type_of(format);
  if (cols % own.block == 0) return own;
  for (const Fallback& fallback : kFallbacks) {
    if (fallback.type != own.name) continue;
    const GgmlType& instead = named(fallback.instead);
    if (cols % instead.block == 0) return instead;
  }
  return named("F16");
}

void encode_ggml(const GgmlType& type, const float* x, std::int64_t values, std::byte* out) {
  if (values % type.block != 0) {
    fail("encode", std::string(type.name),
         fmt::format("{} values are not whole blocks of {}", values, type.block));
  }
  for (const Encoder& encoder : kEncoders) {
    if (encoder.id == type.id) return encoder.encode(x, values, out);
  }
  fail("encode", std::string(type.name), "no encoder for this type");
}

}  // namespace quantmap
