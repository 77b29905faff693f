// Exploits causality by tiles: a tile of queries meets only the keys that its last query (and, with a window,
// its first) can see. All query heads of the group go into one product.
#include <algorithm>
#include <cmath>

#include "core/aligned.hpp"
#include "formats/bf16_array.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/math/exp.hpp"
#include "kernels/math/lanes.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kQueries = 64;  // tokens in a tile of queries

struct Sizes {
  std::int64_t q, scores, p, out;  // bytes of each part of the scratch
  explicit Sizes(const AttentionInput& in) {
    const std::int64_t rows = std::min(kQueries, in.tokens - in.first_query) * in.group;
    const std::int64_t keys = in.window > 0 ? std::min(in.tokens, in.window + kQueries + 16) : in.tokens;
    q = aligned_bytes(rows * in.head_dim * operand_bytes(in.type));
    scores = aligned_bytes(rows * keys * 4);
    p = in.type == OperandType::f32 ? 0 : aligned_bytes(rows * keys * 2);
    out = aligned_bytes(rows * in.head_dim * 4 + rows * 4);
  }
  std::int64_t total() const { return q + scores + p + out; }
};

// One row of scores [count] -> unnormalized probabilities in place; keys outside [first, last] get 0.
// Returns their sum.
QUANTMAP_SIMD float softmax_row(float* score, std::int64_t count, std::int64_t first, std::int64_t last,
                                float scale, const float* k_scale) {
  float largest[kLanes];
  for (float& lane : largest) lane = -INFINITY;
  float* visible = score + first;
  const std::int64_t length = last - first + 1;
  if (k_scale) {
    const float* key = k_scale + first;
    for (std::int64_t i = 0; i < length; ++i) visible[i] *= key[i];
  }
  for_lanes(length, [&](std::int64_t i, int lane) {
    visible[i] *= scale;
    largest[lane] = visible[i] > largest[lane] ? visible[i] : largest[lane];
  });
  float top = largest[0];
  for (const float lane : largest) top = lane > top ? lane : top;
  LaneSum sum;
  for_lanes(length, [&](std::int64_t i, int lane) {
    visible[i] = exp_f32(visible[i] - top);
    sum.lane[lane] += double{visible[i]};
  });
  for (std::int64_t i = 0; i < first; ++i) score[i] = 0;
  for (std::int64_t i = last + 1; i < count; ++i) score[i] = 0;
  return static_cast<float>(sum.total());
}

QUANTMAP_SIMD void scaled(const float* from, std::int64_t count, float factor, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] * factor;
}

}  // namespace

std::int64_t attention_scratch_bytes(const AttentionInput& input) { return Sizes(input).total(); }

void attention(const AttentionInput& in, std::byte* scratch) {
  const Sizes sizes(in);
  std::byte* q = scratch;
  auto* scores = reinterpret_cast<float*>(q + sizes.q);
  std::byte* rounded = q + sizes.q + sizes.scores;
  auto* out = reinterpret_cast<float*>(rounded + sizes.p);
  const std::int64_t dim = in.head_dim;
  const bool bf16 = in.type == OperandType::bf16;
  // Tiles from the last down: a tile's queries are read before its output is written, so out may be q.
  const std::int64_t tiles = (in.tokens - in.first_query + kQueries - 1) / kQueries;
  for (std::int64_t tile = tiles - 1; tile >= 0; --tile) {
    const std::int64_t begin = in.first_query + tile * kQueries;
    const std::int64_t queries = std::min(kQueries, in.tokens - begin);
    const std::int64_t rows = queries * in.group;
    std::int64_t key_begin = in.window > 0 ? std::max<std::int64_t>(0, begin - in.window + 1) : 0;
    key_begin = key_begin / 16 * 16;  // few distinct shapes
    const std::int64_t keys = begin + queries - key_begin;
    for (std::int64_t t = 0; t < queries; ++t)
      for (std::int64_t h = 0; h < in.group; ++h) {
        const float* from = in.q + (begin + t) * in.q_stride + h * dim;
        const std::int64_t row = t * in.group + h;
        if (bf16)
          array_to_bf16(from, dim, reinterpret_cast<std::uint16_t*>(q) + row * dim);
        else
          std::copy(from, from + dim, reinterpret_cast<float*>(q) + row * dim);
      }
    const std::int64_t offset = key_begin * dim * operand_bytes(in.type);
    multiply_once(in.type, q, rows, dim, static_cast<const std::byte*>(in.k) + offset, dim, true, keys,
                  scores);
    float* sums = out + rows * dim;
    const float scale = in.k_scale_count == 1 ? in.scale * in.k_scale[0] : in.scale;
    const float* key_scales = in.k_scale_count > 1 ? in.k_scale + key_begin : nullptr;
    for (std::int64_t t = 0; t < queries; ++t) {
      const std::int64_t last = begin + t - key_begin;
      const std::int64_t first =
          in.window > 0 ? std::max<std::int64_t>(0, begin + t - in.window + 1 - key_begin) : 0;
      for (std::int64_t h = 0; h < in.group; ++h) {
        const std::int64_t row = t * in.group + h;
        sums[row] = softmax_row(scores + row * keys, keys, first, last, scale, key_scales);
        if (bf16)
          array_to_bf16(scores + row * keys, keys, reinterpret_cast<std::uint16_t*>(rounded) + row * keys);
      }
    }
    multiply_once(in.type, bf16 ? static_cast<const void*>(rounded) : scores, rows, keys,
                  static_cast<const std::byte*>(in.v) + offset, dim, false, dim, out);
    for (std::int64_t t = 0; t < queries; ++t)
      for (std::int64_t h = 0; h < in.group; ++h) {
        const std::int64_t row = t * in.group + h;
        scaled(out + row * dim, dim, in.v_scale / sums[row], in.out + (begin + t) * in.out_stride + h * dim);
      }
  }
}

}  // namespace quantmap
