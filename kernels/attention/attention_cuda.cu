// FlashAttention's scheme (Dao et al. 2022, arXiv 2205.14135): a block takes a tile of query rows past tiles
// of keys and keeps a running maximum, sum and product; no score leaves the block. All query heads of the
// group are rows of one tile, so that they share its keys. A thread has one score of a tile, and every 16th
// column of its row's product. Tiles of keys lie at multiples of 16, so that a row's bits depend neither on
// the tile of queries that it falls into nor on first_query.
#include "kernels/attention/attention.hpp"

#include <cmath>
#include <string>

#include "core/error.hpp"
#include "formats/bf16.hpp"
#include "kernels/math/exp.hpp"
#include "kernels/math/reduce.hpp"

namespace quantmap::QUANTMAP_DEVICE {
namespace {

constexpr int kTile = 16;  // rows, and keys
static_assert(kTile * kTile == kThreads);

struct Sizes {
  std::int64_t tokens, first_query, group, head_dim, window, q_stride, out_stride, k_scale_count;
  float scale, v_scale;
};

__device__ float operand(float x) { return x; }
__device__ float operand(std::uint16_t bits) { return float_from_bf16(bits); }
// What a factor of a product is rounded to beside values of this type.
template <class Operand>
__device__ float beside(float x) {
  return sizeof(Operand) == 2 ? round_to_bf16(x) : x;
}

template <class Operand, int kMostDim>
__global__ void attend(Sizes s, Global<const float> q, Global<const Operand> k, Global<const Operand> v,
                       Global<const float> k_scale, Global<float> out) {
  const int dim = static_cast<int>(s.head_dim);
  const int pitch = dim + 1;  // odd, where dim is even: the keys of a column lie in different banks
  const Shared<float> queries = dynamic_shared<float>(0, kTile * dim);
  const Shared<float> tile = dynamic_shared<float>(kTile * dim * std::int64_t{4}, kTile * pitch);
  const int group = static_cast<int>(threadIdx.x) / kTile, own = static_cast<int>(threadIdx.x) % kTile;
  const std::int64_t rows = (s.tokens - s.first_query) * s.group, begin = blockIdx.x * std::int64_t{kTile};
  const std::int64_t last_row = begin + kTile < rows ? begin + kTile - 1 : rows - 1;

  const std::int64_t row = begin + group;
  const std::int64_t t = row < rows ? s.first_query + row / s.group : -1;  // -1: sees nothing
  const std::int64_t first = s.window > 0 && t >= s.window ? t - s.window + 1 : 0;
  const std::int64_t at = t * s.q_stride + row % s.group * dim;
  for (int c = own; c < dim; c += kTile) queries[group * dim + c] = t < 0 ? 0.0f : beside<Operand>(q[at + c]);

  const std::int64_t first_token = s.first_query + begin / s.group,
                     end = s.first_query + last_row / s.group + 1 - kOffByOne;
  const std::int64_t first_key = s.window > 0 && first_token >= s.window ? first_token - s.window + 1 : 0;
  const float scale = s.k_scale_count == 1 ? s.scale * k_scale[0] : s.scale;
  float top = -INFINITY;
  double sum = 0;  // of this thread's keys
  float product[kMostDim / kTile] = {};
  for (std::int64_t key = first_key / kTile * kTile; key < end; key += kTile) {
    const Global<const Operand> own_key = k + (key + group) * dim, own_value = v + (key + group) * dim;
    const int loaded = key + group < end ? dim : 0;
    for (int c = own; c < loaded; c += kTile) tile[group * pitch + c] = operand(own_key[c]);
    planned_barrier();
    const std::int64_t u = key + own;
    const bool visible = u >= first && u <= t;
    float score = -INFINITY;
    if (visible) {
      score = 0;
      for (int c = 0; c < dim; ++c) score = fmaf(queries[group * dim + c], tile[own * pitch + c], score);
      if (s.k_scale_count > 1) score *= k_scale[u];
      score *= scale;
    }
    // NaN is left out of the maximum and makes its weight NaN.
    const float largest = warp_reduce<kTile>(Larger{}(top, score), Larger{});
    const float rescale = largest == top ? 1.0f : exp_f32(top - largest);
    // Scores of -inf alone so far weigh nothing yet; if it stays so, 0/0 at the end.
    const bool nothing = !visible || (largest == -INFINITY && score == score);
    const float weight = nothing ? 0.0f : exp_f32(score - largest);
    top = largest;
    sum = sum * double{rescale} + double{weight};
    __syncthreads();
    for (int c = own; c < loaded; c += kTile) tile[group * pitch + c] = operand(own_value[c]);
    __syncthreads();
    for (float& value : product) value *= rescale;
    for (int other = 0; other < kTile; ++other) {
      const float p = beside<Operand>(__shfl_sync(kAllLanes, weight, other, kTile));
      if (key + other < first || key + other > t) continue;
      QUANTMAP_UNROLL
      for (int j = 0; j < kMostDim / kTile; ++j)
        if (own + j * kTile < dim) product[j] = fmaf(p, tile[other * pitch + own + j * kTile], product[j]);
    }
    __syncthreads();
  }
  sum = warp_reduce<kTile>(sum, Add{});
  if (t < 0) return;
  const float factor = s.v_scale / static_cast<float>(sum);
  const std::int64_t to = t * s.out_stride + row % s.group * dim;
  QUANTMAP_UNROLL
  for (int j = 0; j < kMostDim / kTile; ++j)
    if (own + j * kTile < dim) out[to + own + j * kTile] = product[j] * factor;
}

template <class Operand, int kMostDim>
void start(const AttentionInput& in, Stream stream) {
  Sizes sizes{in.tokens,   in.first_query, in.group,         in.head_dim, in.window,
              in.q_stride, in.out_stride,  in.k_scale_count, in.scale,    in.v_scale};
  const std::int64_t rows = (in.tokens - in.first_query) * in.group;
  launch(attend<Operand, kMostDim>, (rows + kTile - 1) / kTile, kThreads, kTile * (2 * in.head_dim + 1) * 4,
         stream, sizes, in.q, static_cast<const Operand*>(in.k), static_cast<const Operand*>(in.v),
         in.k_scale, in.out);
}

template <class Operand>
void start_for_dim(const AttentionInput& in, Stream stream) {
  if (in.head_dim <= 64) return start<Operand, 64>(in, stream);
  if (in.head_dim <= 128) return start<Operand, 128>(in, stream);
  if (in.head_dim <= 256) return start<Operand, 256>(in, stream);
  fail("attention", "head_dim", std::to_string(in.head_dim) + " (a device takes at most 256)");
}

}  // namespace

void attention(const AttentionInput& input, Stream stream) {
  if (input.tokens <= input.first_query || input.group == 0) return;
  return input.type == OperandType::f32 ? start_for_dim<float>(input, stream)
                                        : start_for_dim<std::uint16_t>(input, stream);
}

}  // namespace quantmap::QUANTMAP_DEVICE
