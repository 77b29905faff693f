// As attention() goes: a tile of queries meets only the keys that its last query (and, with a window, its
// first) can see; all query heads of the group go into one product.
#include <algorithm>
#include <cmath>

#include "core/aligned.hpp"
#include "formats/bf16_array.hpp"
#include "kernels/attention_divergence/attention_divergence.hpp"
#include "kernels/math/exp.hpp"
#include "kernels/math/lanes.hpp"

namespace quantmap {
namespace {

constexpr std::int64_t kQueries = 64;  // tokens in a tile of queries

struct Sizes {
  std::int64_t q, scores;  // bytes of each part of the scratch; the scores twice
  explicit Sizes(const AttentionInput& in) {
    const std::int64_t rows = std::min(kQueries, in.tokens) * in.group;
    const std::int64_t keys = in.window > 0 ? std::min(in.tokens, in.window + kQueries + 16) : in.tokens;
    q = aligned_bytes(rows * in.head_dim * 4);
    scores = aligned_bytes(rows * keys * 4);
  }
};

struct KeyTile {
  std::int64_t begin = 0, queries = 0;   // tokens
  std::int64_t key_begin = 0, keys = 0;  // positions
};

// Unscaled products [queries * group][keys].
void multiply_tile(const AttentionInput& in, const KeyTile& tile, std::byte* q, float* scores) {
  const std::int64_t dim = in.head_dim;
  for (std::int64_t t = 0; t < tile.queries; ++t)
    for (std::int64_t h = 0; h < in.group; ++h) {
      const float* from = in.q + (tile.begin + t) * in.q_stride + h * dim;
      const std::int64_t row = t * in.group + h;
      if (in.type == OperandType::bf16)
        array_to_bf16(from, dim, reinterpret_cast<std::uint16_t*>(q) + row * dim);
      else
        std::copy(from, from + dim, reinterpret_cast<float*>(q) + row * dim);
    }
  const std::int64_t offset = tile.key_begin * dim * operand_bytes(in.type);
  multiply_once(in.type, q, tile.queries * in.group, dim, static_cast<const std::byte*>(in.k) + offset, dim,
                true, tile.keys, scores);
}

// Scales a row of scores in place and returns the largest.
QUANTMAP_SIMD float scale_row(float* score, std::int64_t count, float scale, const float* k_scale) {
  if (k_scale)
    for (std::int64_t i = 0; i < count; ++i) score[i] *= k_scale[i];
  float largest[kLanes];
  for (float& lane : largest) lane = -INFINITY;
  for_lanes(count, [&](std::int64_t i, int lane) {
    score[i] *= scale;
    largest[lane] = score[i] > largest[lane] ? score[i] : largest[lane];
  });
  float top = largest[0];
  for (const float lane : largest) top = lane > top ? lane : top;
  return top;
}

struct RowSums {
  double own = 0, others = 0;  // sums of exp(score - largest)
  double gap = 0;              // sum of exp(s - largest s) (s - r)
};

QUANTMAP_SIMD RowSums sum_row(const float* s, const float* r, std::int64_t count, float top_s, float top_r) {
  LaneSum own, others, gap;
  for_lanes(count, [&](std::int64_t i, int lane) {
    const double weight = exp_f32(s[i] - top_s);
    own.lane[lane] += weight;
    others.lane[lane] += double{exp_f32(r[i] - top_r)};
    gap.lane[lane] += weight * (double{s[i]} - double{r[i]});
  });
  return {own.total(), others.total(), gap.total()};
}

struct Scaling {
  float scale;
  const float* keys;  // from the tile's first key on
  Scaling(const AttentionInput& in, std::int64_t key_begin)
      : scale(in.k_scale_count == 1 ? in.scale * in.k_scale[0] : in.scale),
        keys(in.k_scale_count > 1 ? in.k_scale + key_begin : nullptr) {}
  const float* from(std::int64_t first) const { return keys ? keys + first : nullptr; }
};

double row_divergence(float* s, float* r, std::int64_t count, const Scaling& own, const Scaling& other,
                      std::int64_t first) {
  const float top_s = scale_row(s, count, own.scale, own.from(first));
  const float top_r = scale_row(r, count, other.scale, other.from(first));
  const RowSums sums = sum_row(s, r, count, top_s, top_r);
  const double kl =
      sums.gap / sums.own - (double{top_s} - double{top_r}) - (std::log(sums.own) - std::log(sums.others));
  return kl < 0 ? 0.0 : kl;
}

}  // namespace

std::int64_t attention_divergence_scratch_bytes(const AttentionInput& reference,
                                                const AttentionInput& other) {
  const Sizes a(reference), b(other);
  return std::max(a.q, b.q) + a.scores + b.scores;
}

void attention_divergence(const AttentionInput& reference, const AttentionInput& other, std::byte* scratch,
                          double* kl) {
  const Sizes sizes(reference);
  std::byte* q = scratch;
  auto* s = reinterpret_cast<float*>(q + sizes.q);
  auto* r = reinterpret_cast<float*>(q + sizes.q + sizes.scores);
  const std::int64_t window = reference.window, group = reference.group;
  for (std::int64_t begin = 0; begin < reference.tokens; begin += kQueries) {
    KeyTile tile;
    tile.begin = begin;
    tile.queries = std::min(kQueries, reference.tokens - begin);
    tile.key_begin = window > 0 ? std::max<std::int64_t>(0, begin - window + 1) / 16 * 16 : 0;
    tile.keys = begin + tile.queries - tile.key_begin;
    multiply_tile(reference, tile, q, s);
    multiply_tile(other, tile, q, r);
    const Scaling own(reference, tile.key_begin), others(other, tile.key_begin);
    for (std::int64_t t = 0; t < tile.queries; ++t) {
      const std::int64_t last = begin + t - tile.key_begin;
      const std::int64_t first =
          window > 0 ? std::max<std::int64_t>(0, begin + t - window + 1 - tile.key_begin) : 0;
      for (std::int64_t h = 0; h < group; ++h) {
        const std::int64_t row = t * group + h;
        kl[(begin + t) * group + h] = row_divergence(s + row * tile.keys + first, r + row * tile.keys + first,
                                                     last - first + 1, own, others, first);
      }
    }
  }
}

}  // namespace quantmap
