// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0: blocks of 32 with one scale, and a minimum in the types that end in 1.
#include <cstring>

#include "formats/fp16.hpp"
#include "formats/ggml_encoders.hpp"

namespace quantmap::ggml {
namespace {

constexpr int kBlock = 32;

struct Extremes {
  float min, max;
};
Extremes extremes(const float* x) {
  Extremes e{x[0], x[0]};
  for (int i = 1; i < kBlock; ++i) {
    if (x[i] < e.min) e.min = x[i];
    if (x[i] > e.max) e.max = x[i];
  }
  return e;
}

// Signed: the largest value becomes code 0, whose level is -half; so its sign is the scale's.
void signed_codes(const float* x, float half, std::uint16_t& d, int* codes) {
  const float scale = signed_maximum(x, kBlock) / -half;
  const float inverse = inverse_or_zero(scale);
  for (int i = 0; i < kBlock; ++i)
    codes[i] = truncated(x[i] * inverse + (half + 0.5F), static_cast<int>(2 * half) - 1);
  d = fp16_from_float(scale);
}

void offset_codes(const float* x, int highest, std::uint16_t& d, std::uint16_t& m, int* codes) {
  const Extremes e = extremes(x);
  const float scale = (e.max - e.min) / static_cast<float>(highest);
  const float inverse = inverse_or_zero(scale);
  for (int i = 0; i < kBlock; ++i) codes[i] = truncated((x[i] - e.min) * inverse + 0.5F, highest);
  d = fp16_from_float(scale);
  m = fp16_from_float(e.min);
}

// "Halves": byte j holds element j in its low nibble and element j + 16 in its high one.
void pack_halves(const int* codes, std::uint8_t* qs) {
  for (int j = 0; j < 16; ++j) qs[j] = static_cast<std::uint8_t>((codes[j] & 15) | (codes[j + 16] & 15) << 4);
}

void pack_fifth_bits(const int* codes, std::uint8_t* qh) {
  std::uint32_t bits = 0;
  for (int i = 0; i < kBlock; ++i) bits |= static_cast<std::uint32_t>(codes[i] >> 4 & 1) << i;
  std::memcpy(qh, &bits, sizeof bits);
}

}  // namespace

void encode_block(const float* x, BlockQ4_0& block) {
  int codes[kBlock];
  signed_codes(x, 8, block.d, codes);
  pack_halves(codes, block.qs);
}

void encode_block(const float* x, BlockQ4_1& block) {
  int codes[kBlock];
  offset_codes(x, 15, block.d, block.m, codes);
  pack_halves(codes, block.qs);
}

void encode_block(const float* x, BlockQ5_0& block) {
  int codes[kBlock];
  signed_codes(x, 16, block.d, codes);
  pack_halves(codes, block.qs);
  pack_fifth_bits(codes, block.qh);
}

void encode_block(const float* x, BlockQ5_1& block) {
  int codes[kBlock];
  offset_codes(x, 31, block.d, block.m, codes);
  pack_halves(codes, block.qs);
  pack_fifth_bits(codes, block.qh);
}

void encode_block(const float* x, BlockQ8_0& block) {
  const float largest = signed_maximum(x, kBlock);
  const float scale = (largest < 0 ? -largest : largest) / 127;
  const float inverse = inverse_or_zero(scale);
  for (int i = 0; i < kBlock; ++i)
    block.qs[i] = static_cast<std::int8_t>(rounded_away(x[i] * inverse, -127, 127));
  block.d = fp16_from_float(scale);
}

}  // namespace quantmap::ggml
