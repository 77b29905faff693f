// What a scheme's next-token distribution costs against the reference's, from two rows of logits over the
// whole vocabulary (formats.md, section 11): the fused log-softmax, NLL, KL, total variation and top-1 of one
// token.
//
// clang-format off
//   nll     = -ln q(target)                     nats, lower is better
//   kl      = sum_v p(v) (ln p(v) - ln q(v))    nats, 0 is best; terms with p(v) = 0 are 0
//   tv      = 1/2 sum_v |p(v) - q(v)|           0 to 1; 1 - tv is the acceptance of speculative decoding
//   top1    = the first argmax of both is the same token
//   delta_p = q(target) - p(target)
//   greedy  = the target is q's first argmax
// clang-format on
// p: reference, q: scheme. exp in FP32 (kernels/math/exp.hpp), every sum in double. Equal rows give kl and tv
// exactly 0. q(v) = 0 where p(v) > 0 gives kl = inf; NaN logits give NaN.
#pragma once

#include <cstdint>

namespace quantmap {

// The reference's side of a row, shared by all schemes.
struct ReferenceRow {
  float largest = 0;   // logit
  double log_sum = 0;  // ln sum exp(logit - largest)
  double sum = 0;
  std::int64_t top = 0;  // first argmax
  double lead = 0;       // p(top) - p(second)
  double nll = 0;        // of the target
  double p_target = 0;
};

// logits: [count]; weights: [count], filled with exp(logit - largest), which compare() reads.
ReferenceRow reference_row(const float* logits, std::int64_t count, std::int64_t target, float* weights);

struct TokenScore {
  double nll = 0, kl = 0, tv = 0, delta_p = 0;
  bool top1 = true;          // agrees with the reference
  bool margin_flip = false;  // disagrees where the reference led by more than 0.1
  bool greedy = false;       // greedy decoding would give the target; false where a logit is NaN
};

inline constexpr double kMarginFlipLead = 0.1;

// logits: [count], overwritten. reference, weights, reference_logits: of the same token.
TokenScore compare(float* logits, std::int64_t count, std::int64_t target, const ReferenceRow& reference,
                   const float* reference_logits, const float* weights);

// Both distributions from scratch, everything in double.
TokenScore compare_ref(const float* logits, std::int64_t count, std::int64_t target,
                       const float* reference_logits);

}  // namespace quantmap
