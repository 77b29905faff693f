#include <cmath>

#include "kernels/divergence/divergence.hpp"
#include "kernels/math/exp.hpp"
#include "kernels/math/lanes.hpp"

namespace quantmap {
namespace {

// NaN is passed over here: it turns the sums below into NaN, and so every score.
QUANTMAP_SIMD float largest_of(const float* x, std::int64_t count) {
  float lane_top[4 * kLanes];
  for (float& lane : lane_top) lane = -INFINITY;
  std::int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes)
    for (int lane = 0; lane < 4 * kLanes; ++lane)
      lane_top[lane] = x[i + lane] > lane_top[lane] ? x[i + lane] : lane_top[lane];
  float top = -INFINITY;
  for (; i < count; ++i) top = x[i] > top ? x[i] : top;
  for (const float lane : lane_top) top = lane > top ? lane : top;
  return top;
}

QUANTMAP_SIMD bool holds(const float* x, int count, float value) {
  std::int32_t found = 0;
  for (int i = 0; i < count; ++i) found |= x[i] == value ? 1 : 0;
  return found != 0;
}

std::int64_t first_index_of(const float* x, std::int64_t count, float value) {
  constexpr int kBlock = 1024;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const auto length = static_cast<int>(count - begin < kBlock ? count - begin : kBlock);
    if (!holds(x + begin, length, value)) continue;
    for (int i = 0; i < length; ++i)
      if (x[begin + i] == value) return begin + i;
  }
  return 0;  // NaN: no index means anything
}

QUANTMAP_SIMD double exponentials(const float* logits, std::int64_t count, float largest, float* weights) {
  LaneSum sum;
  for_lanes(count, [&](std::int64_t i, int lane) {
    const float e = exp_f32(logits[i] - largest);
    weights[i] = e;
    sum.lane[lane] += double{e};
  });
  return sum.total();
}

struct Sums {
  double weights;   // sum of exp(q - largest)
  double distance;  // sum of reference weight * (reference logit - logit)
};

// logits -> exp(logit - largest) in place.
QUANTMAP_SIMD Sums weigh(float* logits, std::int64_t count, float largest, const float* reference_logits,
                         const float* weights) {
  LaneSum sum, distance;
  for_lanes(count, [&](std::int64_t i, int lane) {
    const float gap = reference_logits[i] - logits[i];
    // A weight of 0 counts as 0 even where the gap is inf or NaN (-inf minus -inf).
    const float term = weights[i] > 0 ? gap : 0.0f;
    const float e = exp_f32(logits[i] - largest);
    logits[i] = e;
    sum.lane[lane] += double{e};
    distance.lane[lane] += double{weights[i]} * double{term};
  });
  return {sum.total(), distance.total()};
}

QUANTMAP_SIMD double absolute_difference(const float* a, float a_factor, const float* b, float b_factor,
                                         std::int64_t count) {
  LaneSum sum;
  for_lanes(count, [&](std::int64_t i, int lane) {
    sum.lane[lane] += double{std::abs(a[i] * a_factor - b[i] * b_factor)};
  });
  return sum.total();
}

}  // namespace

ReferenceRow reference_row(const float* logits, std::int64_t count, std::int64_t target, float* weights) {
  ReferenceRow row;
  row.largest = largest_of(logits, count);
  row.top = first_index_of(logits, count, row.largest);
  row.sum = exponentials(logits, count, row.largest, weights);
  row.log_sum = std::log(row.sum);
  row.nll = -(double{logits[target]} - double{row.largest} - row.log_sum);
  row.p_target = double{weights[target]} / row.sum;
  // The largest of the others: both sides of the top.
  const float before = largest_of(weights, row.top);
  const float after = largest_of(weights + row.top + 1, count - row.top - 1);
  const float second = before > after ? before : after;
  row.lead = (double{weights[row.top]} - (second > 0 ? double{second} : 0.0)) / row.sum;
  return row;
}

TokenScore compare(float* logits, std::int64_t count, std::int64_t target, const ReferenceRow& reference,
                   const float* reference_logits, const float* weights) {
  TokenScore score;
  const float largest = largest_of(logits, count);
  const std::int64_t top = first_index_of(logits, count, largest);
  score.top1 = top == reference.top;
  score.margin_flip = !score.top1 && reference.lead > kMarginFlipLead;
  const double target_logit = logits[target];
  const Sums sums = weigh(logits, count, largest, reference_logits, weights);
  const double log_sum = std::log(sums.weights);
  score.nll = -(target_logit - double{largest} - log_sum);
  // sum p (ln p - ln q), ln p = b - largest_b - log_sum_b
  score.kl = sums.distance / reference.sum +
             ((double{largest} - double{reference.largest}) + (log_sum - reference.log_sum));
  score.tv = absolute_difference(weights, static_cast<float>(1.0 / reference.sum), logits,
                                 static_cast<float>(1.0 / sums.weights), count) /
             2;
  score.delta_p = double{logits[target]} / sums.weights - reference.p_target;
  score.greedy = top == target && !std::isnan(score.nll);
  return score;
}

}  // namespace quantmap
