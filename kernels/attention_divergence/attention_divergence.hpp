// How far one attention distribution is from another, query by query: KL(p || q) in nats, where p are the
// weights that the reference's queries give its keys and q those of another pair, over the positions that the
// query sees (kernels/attention/attention.hpp). Values play no part. Tiles of queries; no matrix of all
// tokens by all tokens is kept.
//
//   kl[t, h] = sum_u p[u] (ln p[u] - ln q[u]) = sum_u p[u] (s[u] - r[u]) - (ln sum e^s - ln sum e^r)
//
// s, r: scaled scores of the reference and of the other, in FP32 as attention() takes them. exp in FP32
// (kernels/math/exp.hpp), every sum in double; logarithms are never taken of a p or q, so a weight that
// underflows is no infinity. Equal scores give exactly 0; scores that are not numbers give NaN. What comes
// out below 0 by rounding is 0.
#pragma once

#include <cstdint>

#include "kernels/attention/attention.hpp"

namespace quantmap {

// Tokens, group, head_dim and window must be equal; type, q, k and their scales may differ. v and out are not
// read. kl: [tokens][group].
std::int64_t attention_divergence_scratch_bytes(const AttentionInput& reference, const AttentionInput& other);
void attention_divergence(const AttentionInput& reference, const AttentionInput& other, std::byte* scratch,
                          double* kl);
// Naive, everything in double.
void attention_divergence_ref(const AttentionInput& reference, const AttentionInput& other, double* kl);

}  // namespace quantmap
