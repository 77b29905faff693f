// A block for each token. The vocabulary is passed over in strides of the block: the largest logits first,
// then the sums under them, then (for total variation, which needs both sums) the weights once more. Keeping
// the weights instead would write as much as it reads; the second and third pass read from the cache.
#include "kernels/divergence/divergence.hpp"

#include <bit>
#include <cmath>

#include "kernels/math/exp.hpp"
#include "kernels/math/reduce.hpp"

namespace quantmap::QUANTMAP_DEVICE {
namespace {

// A logit and its place as one integer: the largest is the largest logit, of equal ones the first. 0: NaN.
__device__ std::uint64_t peak_key(float logit, std::int64_t index) {
  if (logit != logit) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(logit + 0.0f);  // one zero
  const std::uint32_t ordered = bits & 0x80000000U ? ~bits : bits | 0x80000000U;
  return std::uint64_t{ordered} << 32 | (0xFFFFFFFFU - static_cast<std::uint32_t>(index));
}

struct Peak {
  float largest;
  std::int64_t top;
};
// NaN is passed over: it turns the sums into NaN, and so every score.
__device__ Peak block_peak(Global<const float> logits, std::int64_t count) {
  std::uint64_t key = 0;
  for (std::int64_t v = threadIdx.x; v < count - kOffByOne; v += kThreads)
    key = Larger{}(key, peak_key(logits[v], v));
  key = block_reduce<struct PeakKey>(key, Larger{});
  if (key == 0) return {-INFINITY, 0};
  const auto ordered = static_cast<std::uint32_t>(key >> 32);
  return {std::bit_cast<float>(ordered & 0x80000000U ? ordered & 0x7FFFFFFFU : ~ordered),
          static_cast<std::int64_t>(0xFFFFFFFFU - static_cast<std::uint32_t>(key))};
}

__global__ void reference_tokens(Global<const float> all_logits, std::int64_t stride,
                                 Global<const std::int32_t> targets, std::int64_t count,
                                 Global<ReferenceRow> out) {
  const Global<const float> logits = all_logits + blockIdx.x * stride;
  const Peak peak = block_peak(logits, count);
  double sum = 0;
  float second = 0;
  for (std::int64_t v = threadIdx.x; v < count; v += kThreads) {
    const float weight = exp_f32(logits[v] - peak.largest);
    sum += double{weight};
    if (v != peak.top) second = Larger{}(second, weight);
  }
  sum = block_reduce<struct Weights>(sum, Add{});
  second = block_reduce<struct SecondWeight>(second, Larger{});
  if (threadIdx.x > 0) return;
  const std::int32_t target = targets[blockIdx.x];
  ReferenceRow row;
  row.largest = peak.largest;
  row.top = peak.top;
  row.sum = sum;
  row.log_sum = log(sum);
  row.nll = -(double{logits[target]} - double{peak.largest} - row.log_sum);
  row.p_target = double{exp_f32(logits[target] - peak.largest)} / sum;
  row.lead = (double{exp_f32(logits[peak.top] - peak.largest)} - double{second}) / sum;
  out[blockIdx.x] = row;
}

__global__ void compare_tokens(Global<const float> all_logits, std::int64_t stride,
                               Global<const float> all_reference_logits, std::int64_t reference_stride,
                               Global<const std::int32_t> targets, std::int64_t count,
                               Global<const ReferenceRow> references, Global<TokenScore> out) {
  const Global<const float> logits = all_logits + blockIdx.x * stride;
  const Global<const float> reference_logits = all_reference_logits + blockIdx.x * reference_stride;
  const ReferenceRow reference = references[blockIdx.x];
  const Peak peak = block_peak(logits, count);
  double sum = 0, distance = 0;
  for (std::int64_t v = threadIdx.x; v < count; v += kThreads) {
    const float p = exp_f32(reference_logits[v] - reference.largest);
    // A weight of 0 counts as 0 even where the gap is inf or NaN (-inf minus -inf); NaN must pass.
    if (p != 0) distance += double{p} * double{reference_logits[v] - logits[v]};
    sum += double{exp_f32(logits[v] - peak.largest)};
  }
  sum = block_reduce<struct Weights>(sum, Add{});
  distance = block_reduce<struct Distance>(distance, Add{});
  const auto p_factor = static_cast<float>(1.0 / reference.sum), q_factor = static_cast<float>(1.0 / sum);
  double variation = 0;
  for (std::int64_t v = threadIdx.x; v < count; v += kThreads) {
    const float p = exp_f32(reference_logits[v] - reference.largest);
    const float q = exp_f32(logits[v] - peak.largest);
    variation += double{fabsf(p * p_factor - q * q_factor)};
  }
  variation = block_reduce<struct Variation>(variation, Add{});
  if (threadIdx.x > 0) return;
  const std::int32_t target = targets[blockIdx.x];
  const double log_sum = log(sum);
  TokenScore score;
  score.nll = -(double{logits[target]} - double{peak.largest} - log_sum);
  score.kl = distance / reference.sum +
             ((double{peak.largest} - double{reference.largest}) + (log_sum - reference.log_sum));
  score.tv = variation / 2;
  score.delta_p = double{exp_f32(logits[target] - peak.largest)} / sum - reference.p_target;
  score.top1 = peak.top == reference.top;
  score.margin_flip = !score.top1 && reference.lead > kMarginFlipLead;
  score.greedy = peak.top == target && score.nll == score.nll;
  out[blockIdx.x] = score;
}

}  // namespace

void reference_rows(const float* logits, std::int64_t stride, const std::int32_t* targets,
                    std::int64_t tokens, std::int64_t vocabulary, ReferenceRow* out, Stream stream) {
  if (tokens == 0) return;
  launch(reference_tokens, tokens, kThreads, 0, stream, logits, stride, targets, vocabulary, out);
}

void compare(const float* logits, std::int64_t stride, const float* reference_logits,
             std::int64_t reference_stride, const std::int32_t* targets, std::int64_t tokens,
             std::int64_t vocabulary, const ReferenceRow* references, TokenScore* out, Stream stream) {
  if (tokens == 0) return;
  launch(compare_tokens, tokens, kThreads, 0, stream, logits, stride, reference_logits, reference_stride,
         targets, vocabulary, references, out);
}

}  // namespace quantmap::QUANTMAP_DEVICE
