// Memory layout of GGUF blocks (formats.md, section 6), their tables of levels and their byte-sized scales:
// what decoding (ggml_blocks.cpp), encoding (ggml_encode.hpp) and the fast quantizers share.
#pragma once

#include <bit>
#include <cstdint>

#include "core/simd.hpp"

namespace quantmap::ggml {

// Blocks of 32 and super-blocks of 256, as in the file; d, dmin and m are FP16 bits.
inline constexpr int kSuper = 256;
struct BlockQ4_0 {
  std::uint16_t d;
  std::uint8_t qs[16];
};
struct BlockQ4_1 {
  std::uint16_t d, m;
  std::uint8_t qs[16];
};
struct BlockQ5_0 {
  std::uint16_t d;
  std::uint8_t qh[4], qs[16];
};
struct BlockQ5_1 {
  std::uint16_t d, m;
  std::uint8_t qh[4], qs[16];
};
struct BlockQ8_0 {
  std::uint16_t d;
  std::int8_t qs[32];
};
struct BlockQ2K {
  std::uint8_t scales[16], qs[64];
  std::uint16_t d, dmin;
};
struct BlockQ3K {
  std::uint8_t hmask[32], qs[64], scales[12];
  std::uint16_t d;
};
struct BlockQ4K {
  std::uint16_t d, dmin;
  std::uint8_t scales[12], qs[128];
};
struct BlockQ5K {
  std::uint16_t d, dmin;
  std::uint8_t scales[12], qh[32], qs[128];
};
struct BlockQ6K {
  std::uint8_t ql[128], qh[64];
  std::int8_t scales[16];
  std::uint16_t d;
};
struct BlockIq4Nl {
  std::uint16_t d;
  std::uint8_t qs[16];
};
struct BlockIq4Xs {
  std::uint16_t d, scales_h;
  std::uint8_t scales_l[4], qs[128];
};
struct BlockTq1 {
  std::uint8_t qs[48], qh[4];
  std::uint16_t d;
};
struct BlockTq2 {
  std::uint8_t qs[64];
  std::uint16_t d;
};
struct BlockQ1_0 {
  std::uint16_t d;
  std::uint8_t qs[16];
};
struct BlockQ2_0 {
  std::uint16_t d;
  std::uint8_t qs[16];
};
struct BlockMxfp4 {
  std::uint8_t e, qs[16];
};
struct BlockNvfp4 {
  std::uint8_t d[4], qs[32];
};
static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34 && sizeof(BlockQ2K) == 84);
static_assert(sizeof(BlockQ3K) == 110 && sizeof(BlockQ4K) == 144 && sizeof(BlockQ5K) == 176);
static_assert(sizeof(BlockQ6K) == 210 && sizeof(BlockIq4Nl) == 18 && sizeof(BlockIq4Xs) == 136);
static_assert(sizeof(BlockTq1) == 54 && sizeof(BlockTq2) == 66 && sizeof(BlockQ1_0) == 18);
static_assert(sizeof(BlockQ2_0) == 18 && sizeof(BlockMxfp4) == 17 && sizeof(BlockNvfp4) == 36);

// The 16 levels of IQ4_NL and IQ4_XS, and the middles between them: a level's interval begins at its lower
// one.
inline constexpr float kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr float kIq4Middles[15] = {-115.5F, -93.5F, -74,   -57,   -42, -28.5F, -16, -4.5F,
                                          7,       19,     31.5F, 45.5F, 61,  79,     101};

// MXFP4 and NVFP4: twice E2M1, beside scales that are halved.
inline constexpr float kFp4Levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// 2^(e-128). FF is NaN, as OCP has it: ggml's encoder never writes it and its decoder does not look for it.
QUANTMAP_INLINE float half_e8m0(std::uint8_t e) {
  const std::uint32_t bits = e < 2 ? 0x00200000U << e : static_cast<std::uint32_t>(e - 1) << 23;
  return std::bit_cast<float>(e == 255 ? 0x7FC00000U : bits);
}

// Half of UE4M3; 7F is 0 in ggml. FF is our NaN: bit 7 is not used by the format, and no encoder sets it.
QUANTMAP_INLINE float half_ue4m3(std::uint8_t code) {
  const std::uint32_t exponent = (code >> 3) & 15U;
  const std::uint32_t mantissa = code & 7U;
  const float subnormal = static_cast<float>(mantissa) * 0x1p-10F;
  const float normal = std::bit_cast<float>((exponent + 119) << 23 | mantissa << 20);
  const float value = exponent == 0 ? subnormal : normal;
  return code == 0xFF ? std::bit_cast<float>(0x7FC00000U) : code == 0x7F ? 0.0F : value;
}

}  // namespace quantmap::ggml
