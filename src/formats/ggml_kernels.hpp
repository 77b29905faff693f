// The fast GGUF quantizers behind round_ggml: values in, decoded values out, no bytes between. n is a
// multiple of the type's block and at most kGgmlChunk; y is not x. What a block that is not finite decodes to
// is the caller's.
#pragma once

#include <cstdint>

namespace quantmap::ggml {

inline constexpr std::int64_t kGgmlChunk = 2048;  // whole blocks of every type

// ggml_simple_rows.cpp: one scale from the largest value (or the mean), no search.
void round_q4_0(const float* x, std::int64_t n, float* y);
void round_q4_1(const float* x, std::int64_t n, float* y);
void round_q5_0(const float* x, std::int64_t n, float* y);
void round_q5_1(const float* x, std::int64_t n, float* y);
void round_q8_0(const float* x, std::int64_t n, float* y);
void round_ternary(const float* x, std::int64_t n, float* y);  // TQ1_0, TQ2_0
void round_q2_0(const float* x, std::int64_t n, float* y);
void round_q1_0(const float* x, std::int64_t n, float* y);
void round_mxfp4(const float* x, std::int64_t n, float* y);
void round_nvfp4(const float* x, std::int64_t n, float* y);

// ggml_k_rows.cpp, ggml_iq4_rows.cpp: the searches, 16 sub-blocks side by side.
void round_q2_k(const float* x, std::int64_t n, float* y);
void round_q3_k(const float* x, std::int64_t n, float* y);
void round_q4_k(const float* x, std::int64_t n, float* y);
void round_q5_k(const float* x, std::int64_t n, float* y);
void round_q6_k(const float* x, std::int64_t n, float* y);
void round_iq4_nl(const float* x, std::int64_t n, float* y);
void round_iq4_xs(const float* x, std::int64_t n, float* y);

}  // namespace quantmap::ggml
