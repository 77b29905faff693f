// TQ1_0, TQ2_0 (-1, 0, 1), Q2_0 (-1, 0, 1, 2) and Q1_0 (-1, 1), each times one scale. Plain rounding by the
// largest magnitude: meant for weights that were trained as such; on any other they lose most.
#include <cmath>

#include "formats/fp16.hpp"
#include "formats/ggml_encoders.hpp"

namespace quantmap::ggml {
namespace {

// The scale is the largest magnitude; digits are 0, 1, 2 (and 3 where `highest` is 2).
void digits_of(const float* x, int n, int highest, std::uint16_t& d, int* digits) {
  const float scale = std::fabs(signed_maximum(x, n));
  const float inverse = inverse_or_zero(scale);
  for (int i = 0; i < n; ++i) digits[i] = rounded_away(x[i] * inverse, -1, highest) + 1;
  d = fp16_from_float(scale);
}

// Digits `first`, `first + stride`, … as a number in base 3, the first most significant, scaled so that each
// can be had back by products alone: ceil(v * 256 / 243). Fewer than five: zeros at the end.
std::uint8_t ternary_byte(const int* digits, int stride, int count) {
  int value = 0;
  for (int n = 0; n < 5; ++n) value = 3 * value + (n < count ? digits[n * stride] : 0);
  return static_cast<std::uint8_t>((value * 256 + 242) / 243);
}

}  // namespace

void encode_block(const float* x, BlockTq1& block) {
  int digits[kSuper];
  digits_of(x, kSuper, 1, block.d, digits);
  for (int m = 0; m < 32; ++m) block.qs[m] = ternary_byte(digits + m, 32, 5);
  for (int m = 0; m < 16; ++m) block.qs[32 + m] = ternary_byte(digits + 160 + m, 16, 5);
  for (int j = 0; j < 4; ++j) block.qh[j] = ternary_byte(digits + 240 + j, 4, 4);
}

void encode_block(const float* x, BlockTq2& block) {
  int digits[kSuper];
  digits_of(x, kSuper, 1, block.d, digits);
  for (int half = 0; half < 2; ++half) {
    for (int l = 0; l < 32; ++l) {
      int byte = 0;
      for (int k = 0; k < 4; ++k) byte |= digits[128 * half + 32 * k + l] << (2 * k);
      block.qs[32 * half + l] = static_cast<std::uint8_t>(byte);
    }
  }
}

void encode_block(const float* x, BlockQ2_0& block) {
  int digits[64];
  digits_of(x, 64, 2, block.d, digits);
  for (int j = 0; j < 16; ++j) {
    int byte = 0;
    for (int k = 0; k < 4; ++k) byte |= digits[4 * j + k] << (2 * k);
    block.qs[j] = static_cast<std::uint8_t>(byte);
  }
}

void encode_block(const float* x, BlockQ1_0& block) {
  float sum = 0;
  for (int i = 0; i < 128; ++i) sum += std::fabs(x[i]);
  block.d = fp16_from_float(sum / 128);
  for (int j = 0; j < 16; ++j) {
    int byte = 0;
    for (int k = 0; k < 8; ++k) byte |= (x[8 * j + k] >= 0 ? 1 : 0) << k;
    block.qs[j] = static_cast<std::uint8_t>(byte);
  }
}

}  // namespace quantmap::ggml
