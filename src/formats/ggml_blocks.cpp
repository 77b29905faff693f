#include "formats/ggml_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "core/error.hpp"
#include "core/simd.hpp"
#include "formats/bf16.hpp"
#include "formats/fp16.hpp"
#include "formats/ggml_layout.hpp"

namespace quantmap {
namespace {

using namespace ggml;

// "Halves": byte j holds element j in its low nibble and element j + 16 in its high one.
QUANTMAP_INLINE void decode_block(const BlockQ4_0& b, float* out) {
  const float d = float_from_fp16(b.d);
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>((b.qs[j] & 15) - 8) * d;
    out[j + 16] = static_cast<float>((b.qs[j] >> 4) - 8) * d;
  }
}

QUANTMAP_INLINE void decode_block(const BlockQ4_1& b, float* out) {
  const float d = float_from_fp16(b.d);
  const float m = float_from_fp16(b.m);
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>(b.qs[j] & 15) * d + m;
    out[j + 16] = static_cast<float>(b.qs[j] >> 4) * d + m;
  }
}

// Bit e of qh is the fifth bit of element e.
QUANTMAP_INLINE int five_bits(const std::uint8_t* qs, std::uint32_t high, int j, int half) {
  const int low = half ? qs[j] >> 4 : qs[j] & 15;
  return low | static_cast<int>((high >> (j + 16 * half)) & 1U) << 4;
}

QUANTMAP_INLINE void decode_block(const BlockQ5_0& b, float* out) {
  const float d = float_from_fp16(b.d);
  std::uint32_t high = 0;
  std::memcpy(&high, b.qh, sizeof high);
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>(five_bits(b.qs, high, j, 0) - 16) * d;
    out[j + 16] = static_cast<float>(five_bits(b.qs, high, j, 1) - 16) * d;
  }
}

QUANTMAP_INLINE void decode_block(const BlockQ5_1& b, float* out) {
  const float d = float_from_fp16(b.d);
  const float m = float_from_fp16(b.m);
  std::uint32_t high = 0;
  std::memcpy(&high, b.qh, sizeof high);
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>(five_bits(b.qs, high, j, 0)) * d + m;
    out[j + 16] = static_cast<float>(five_bits(b.qs, high, j, 1)) * d + m;
  }
}

QUANTMAP_INLINE void decode_block(const BlockQ8_0& b, float* out) {
  const float d = float_from_fp16(b.d);
  for (int j = 0; j < 32; ++j) out[j] = static_cast<float>(b.qs[j]) * d;
}

// Q2_K and Q3_K: element 128h + 32k + l is the k-th pair of bits of qs[32h + l]; a scale for each 16
// elements.
QUANTMAP_INLINE void decode_block(const BlockQ2K& b, float* out) {
  const float d = float_from_fp16(b.d);
  const float dmin = float_from_fp16(b.dmin);
  for (int part = 0; part < kSuper / 16; ++part) {
    const float scale = d * static_cast<float>(b.scales[part] & 15);
    const float min = dmin * static_cast<float>(b.scales[part] >> 4);
    const std::uint8_t* qs = b.qs + 32 * (part / 8) + 16 * (part % 2);
    const int shift = part % 8 / 2 * 2;
    for (int l = 0; l < 16; ++l) out[16 * part + l] = scale * static_cast<float>((qs[l] >> shift) & 3) - min;
  }
}

QUANTMAP_INLINE void decode_block(const BlockQ3K& b, float* out) {
  const float d = float_from_fp16(b.d);
  for (int part = 0; part < kSuper / 16; ++part) {
    const int low = part < 8 ? b.scales[part] & 15 : b.scales[part - 8] >> 4;
    const int high = (b.scales[8 + part % 4] >> (2 * (part / 4))) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const std::uint8_t* qs = b.qs + 32 * (part / 8) + 16 * (part % 2);
    const std::uint8_t* hmask = b.hmask + 16 * (part % 2);
    const int shift = part % 8 / 2 * 2;
    const int bit = part / 2;
    for (int l = 0; l < 16; ++l) {
      const int q = ((qs[l] >> shift) & 3) - (((hmask[l] >> bit) & 1) ? 0 : 4);
      out[16 * part + l] = scale * static_cast<float>(q);
    }
  }
}

// The 6-bit scale and minimum of sub-block j of Q4_K and Q5_K.
QUANTMAP_INLINE void scale_and_min(const std::uint8_t* s, int j, int& scale, int& min) {
  if (j < 4) {
    scale = s[j] & 63;
    min = s[j + 4] & 63;
  } else {
    scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
    min = (s[j + 4] >> 4) | (s[j] >> 6) << 4;
  }
}

// Q4_K and Q5_K: element 64c + l in the low nibble of qs[32c + l], element 64c + 32 + l in the high one.
QUANTMAP_INLINE void decode_block(const BlockQ4K& b, float* out) {
  const float d = float_from_fp16(b.d);
  const float dmin = float_from_fp16(b.dmin);
  for (int part = 0; part < kSuper / 32; ++part) {
    int s = 0;
    int m = 0;
    scale_and_min(b.scales, part, s, m);
    const float scale = d * static_cast<float>(s);
    const float min = dmin * static_cast<float>(m);
    const std::uint8_t* qs = b.qs + 32 * (part / 2);
    const int shift = 4 * (part % 2);
    for (int l = 0; l < 32; ++l) out[32 * part + l] = scale * static_cast<float>((qs[l] >> shift) & 15) - min;
  }
}

QUANTMAP_INLINE void decode_block(const BlockQ5K& b, float* out) {
  const float d = float_from_fp16(b.d);
  const float dmin = float_from_fp16(b.dmin);
  for (int part = 0; part < kSuper / 32; ++part) {
    int s = 0;
    int m = 0;
    scale_and_min(b.scales, part, s, m);
    const float scale = d * static_cast<float>(s);
    const float min = dmin * static_cast<float>(m);
    const std::uint8_t* qs = b.qs + 32 * (part / 2);
    const int shift = 4 * (part % 2);
    for (int l = 0; l < 32; ++l) {
      const int q = ((qs[l] >> shift) & 15) | ((b.qh[l] >> part) & 1) << 4;
      out[32 * part + l] = scale * static_cast<float>(q) - min;
    }
  }
}

// Q6_K: element 128h + 32k + l has its low bits in ql[64h + 32(k & 1) + l], low nibble for k < 2, and its
// high two in the k-th pair of bits of qh[32h + l]; a scale for each 16 elements.
QUANTMAP_INLINE void decode_block(const BlockQ6K& b, float* out) {
  const float d = float_from_fp16(b.d);
  for (int part = 0; part < kSuper / 16; ++part) {
    const int half = part / 8;
    const int k = part % 8 / 2;
    const float scale = d * static_cast<float>(b.scales[part]);
    const std::uint8_t* ql = b.ql + 64 * half + 32 * (k & 1) + 16 * (part % 2);
    const std::uint8_t* qh = b.qh + 32 * half + 16 * (part % 2);
    for (int l = 0; l < 16; ++l) {
      const int q = ((ql[l] >> (k < 2 ? 0 : 4)) & 15) | ((qh[l] >> (2 * k)) & 3) << 4;
      out[16 * part + l] = scale * static_cast<float>(q - 32);
    }
  }
}

QUANTMAP_INLINE void decode_block(const BlockIq4Nl& b, float* out) {
  const float d = float_from_fp16(b.d);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * kIq4Levels[b.qs[j] & 15];
    out[j + 16] = d * kIq4Levels[b.qs[j] >> 4];
  }
}

// IQ4_XS: a 6-bit scale for each 32 elements, low four bits in scales_l, high two in scales_h.
QUANTMAP_INLINE void decode_block(const BlockIq4Xs& b, float* out) {
  const float d = float_from_fp16(b.d);
  for (int part = 0; part < kSuper / 32; ++part) {
    const int low = (b.scales_l[part / 2] >> (4 * (part % 2))) & 15;
    const int high = (b.scales_h >> (2 * part)) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const std::uint8_t* qs = b.qs + 16 * part;
    for (int j = 0; j < 16; ++j) {
      out[32 * part + j] = scale * kIq4Levels[qs[j] & 15];
      out[32 * part + j + 16] = scale * kIq4Levels[qs[j] >> 4];
    }
  }
}

// Base 3: a byte is ceil(v * 256 / 243) of five digits v; times 3^n modulo 256, its top "digit" is the n-th.
QUANTMAP_INLINE float ternary_digit(std::uint8_t byte, int n) {
  constexpr int kPower[] = {1, 3, 9, 27, 81};
  const int shifted = (byte * kPower[n]) & 255;
  return static_cast<float>(((shifted * 3) >> 8) - 1);
}

QUANTMAP_INLINE void decode_block(const BlockTq1& b, float* out) {
  const float d = float_from_fp16(b.d);
  for (int n = 0; n < 5; ++n) {
    for (int m = 0; m < 32; ++m) out[32 * n + m] = ternary_digit(b.qs[m], n) * d;
    for (int m = 0; m < 16; ++m) out[160 + 16 * n + m] = ternary_digit(b.qs[32 + m], n) * d;
  }
  for (int n = 0; n < 4; ++n) {
    for (int j = 0; j < 4; ++j) out[240 + 4 * n + j] = ternary_digit(b.qh[j], n) * d;
  }
}

QUANTMAP_INLINE void decode_block(const BlockTq2& b, float* out) {
  const float d = float_from_fp16(b.d);
  for (int e = 0; e < kSuper; ++e) {
    const int q = (b.qs[32 * (e / 128) + e % 32] >> (2 * (e % 128 / 32))) & 3;
    out[e] = static_cast<float>(q - 1) * d;
  }
}

QUANTMAP_INLINE void decode_block(const BlockQ1_0& b, float* out) {
  const float d = float_from_fp16(b.d);
  for (int e = 0; e < 128; ++e) out[e] = ((b.qs[e / 8] >> (e % 8)) & 1) ? d : -d;
}

QUANTMAP_INLINE void decode_block(const BlockQ2_0& b, float* out) {
  const float d = float_from_fp16(b.d);
  for (int e = 0; e < 64; ++e) out[e] = static_cast<float>(((b.qs[e / 4] >> (2 * (e % 4))) & 3) - 1) * d;
}

QUANTMAP_INLINE void decode_block(const BlockMxfp4& b, float* out) {
  const float d = half_e8m0(b.e);
  for (int j = 0; j < 16; ++j) {
    out[j] = kFp4Levels[b.qs[j] & 15] * d;
    out[j + 16] = kFp4Levels[b.qs[j] >> 4] * d;
  }
}

QUANTMAP_INLINE void decode_block(const BlockNvfp4& b, float* out) {
  for (int s = 0; s < 4; ++s) {
    const float d = half_ue4m3(b.d[s]);
    for (int j = 0; j < 8; ++j) {
      out[16 * s + j] = kFp4Levels[b.qs[8 * s + j] & 15] * d;
      out[16 * s + j + 8] = kFp4Levels[b.qs[8 * s + j] >> 4] * d;
    }
  }
}

// Copies each block out of the file, which aligns nothing.
template <class Block, int kValues>
QUANTMAP_INLINE void each_block(const std::byte* data, std::int64_t values, float* out) {
  for (std::int64_t i = 0; i < values; i += kValues, data += sizeof(Block)) {
    Block block;
    std::memcpy(&block, data, sizeof block);
    decode_block(block, out + i);
  }
}

}  // namespace

// One function a type, so that each is compiled for every vector width.
namespace ggml {
void f32(const std::byte* data, std::int64_t values, float* out) {
  std::memcpy(out, data, static_cast<std::size_t>(values) * sizeof(float));
}
QUANTMAP_SIMD void f16(const std::byte* data, std::int64_t values, float* out) {
  for (std::int64_t i = 0; i < values; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, data + 2 * i, sizeof bits);
    out[i] = float_from_fp16(bits);
  }
}
QUANTMAP_SIMD void bf16(const std::byte* data, std::int64_t values, float* out) {
  for (std::int64_t i = 0; i < values; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, data + 2 * i, sizeof bits);
    out[i] = float_from_bf16(bits);
  }
}
QUANTMAP_SIMD void q4_0(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockQ4_0, 32>(data, n, out);
}
QUANTMAP_SIMD void q4_1(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockQ4_1, 32>(data, n, out);
}
QUANTMAP_SIMD void q5_0(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockQ5_0, 32>(data, n, out);
}
QUANTMAP_SIMD void q5_1(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockQ5_1, 32>(data, n, out);
}
QUANTMAP_SIMD void q8_0(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockQ8_0, 32>(data, n, out);
}
QUANTMAP_SIMD void q2_k(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockQ2K, 256>(data, n, out);
}
QUANTMAP_SIMD void q3_k(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockQ3K, 256>(data, n, out);
}
QUANTMAP_SIMD void q4_k(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockQ4K, 256>(data, n, out);
}
QUANTMAP_SIMD void q5_k(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockQ5K, 256>(data, n, out);
}
QUANTMAP_SIMD void q6_k(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockQ6K, 256>(data, n, out);
}
QUANTMAP_SIMD void iq4_nl(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockIq4Nl, 32>(data, n, out);
}
QUANTMAP_SIMD void iq4_xs(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockIq4Xs, 256>(data, n, out);
}
QUANTMAP_SIMD void tq1_0(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockTq1, 256>(data, n, out);
}
QUANTMAP_SIMD void tq2_0(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockTq2, 256>(data, n, out);
}
QUANTMAP_SIMD void mxfp4(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockMxfp4, 32>(data, n, out);
}
QUANTMAP_SIMD void nvfp4(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockNvfp4, 64>(data, n, out);
}
QUANTMAP_SIMD void q1_0(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockQ1_0, 128>(data, n, out);
}
QUANTMAP_SIMD void q2_0(const std::byte* data, std::int64_t n, float* out) {
  each_block<BlockQ2_0, 64>(data, n, out);
}
}  // namespace ggml

namespace {

struct Row {
  GgmlType type;
  void (*decode)(const std::byte*, std::int64_t, float*);
};

constexpr Row known(std::int32_t id, std::string_view name, std::int32_t block, std::int32_t bytes,
                    void (*decode)(const std::byte*, std::int64_t, float*) = nullptr) {
  return {{id, name, block, bytes, decode != nullptr}, decode};
}

constexpr Row kRows[] = {
    known(0, "F32", 1, 4, ggml::f32),
    known(1, "F16", 1, 2, ggml::f16),
    known(2, "Q4_0", 32, 18, ggml::q4_0),
    known(3, "Q4_1", 32, 20, ggml::q4_1),
    known(6, "Q5_0", 32, 22, ggml::q5_0),
    known(7, "Q5_1", 32, 24, ggml::q5_1),
    known(8, "Q8_0", 32, 34, ggml::q8_0),
    known(9, "Q8_1", 32, 36),
    known(10, "Q2_K", 256, 84, ggml::q2_k),
    known(11, "Q3_K", 256, 110, ggml::q3_k),
    known(12, "Q4_K", 256, 144, ggml::q4_k),
    known(13, "Q5_K", 256, 176, ggml::q5_k),
    known(14, "Q6_K", 256, 210, ggml::q6_k),
    known(15, "Q8_K", 256, 292),
    known(16, "IQ2_XXS", 256, 66),
    known(17, "IQ2_XS", 256, 74),
    known(18, "IQ3_XXS", 256, 98),
    known(19, "IQ1_S", 256, 50),
    known(20, "IQ4_NL", 32, 18, ggml::iq4_nl),
    known(21, "IQ3_S", 256, 110),
    known(22, "IQ2_S", 256, 82),
    known(23, "IQ4_XS", 256, 136, ggml::iq4_xs),
    known(24, "I8", 1, 1),
    known(25, "I16", 1, 2),
    known(26, "I32", 1, 4),
    known(27, "I64", 1, 8),
    known(28, "F64", 1, 8),
    known(29, "IQ1_M", 256, 56),
    known(30, "BF16", 1, 2, ggml::bf16),
    known(34, "TQ1_0", 256, 54, ggml::tq1_0),
    known(35, "TQ2_0", 256, 66, ggml::tq2_0),
    known(39, "MXFP4", 32, 17, ggml::mxfp4),
    known(40, "NVFP4", 64, 36, ggml::nvfp4),
    known(41, "Q1_0", 128, 18, ggml::q1_0),
    known(42, "Q2_0", 64, 18, ggml::q2_0),
};

constexpr auto kTypes = [] {
  std::array<GgmlType, std::size(kRows)> types{};
  for (std::size_t i = 0; i < types.size(); ++i) types[i] = kRows[i].type;
  return types;
}();

}  // namespace

std::span<const GgmlType> ggml_types() { return kTypes; }

const GgmlType* find_ggml_type(std::int32_t id) {
  const auto found =
      std::find_if(kTypes.begin(), kTypes.end(), [id](const GgmlType& t) { return t.id == id; });
  return found == kTypes.end() ? nullptr : &*found;
}

void decode_ggml(const GgmlType& type, const std::byte* data, std::int64_t values, float* out) {
  if (values % type.block != 0) {
    fail("decode", std::string(type.name),
         fmt::format("{} values are not whole blocks of {}", values, type.block));
  }
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.type.id == type.id; });
  if (row == std::end(kRows) || !row->decode) {
    fail_input("tensor type not supported", "", std::string(type.name) + " cannot be decoded");
  }
  row->decode(data, values, out);
}

}  // namespace quantmap
