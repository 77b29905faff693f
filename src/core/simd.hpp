// Vector paths chosen at run time (architecture.md: no -march=native). A function marked QUANTMAP_SIMD is
// compiled for plain x86-64, AVX2 and AVX-512; the loader picks one by the processor. Contraction is off, so
// all versions round alike; a reduction must be written with explicit lanes to vectorize at all.
// The body must be self-contained loops: calls that are not inlined run plain code. Sanitizer builds get the
// plain version only (their run time is not ready when the loader resolves the choice).
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(QUANTMAP_SANITIZED)
#define QUANTMAP_SIMD __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define QUANTMAP_SIMD
#endif
// Before a loop in which out[i] depends on x[i] alone, so that it vectorizes although out may be x.
#if defined(__GNUC__) && !defined(__clang__)
#define QUANTMAP_ELEMENTWISE _Pragma("GCC ivdep")
#else
#define QUANTMAP_ELEMENTWISE
#endif
// For helpers of such functions: they must be inlined to take part.
#define QUANTMAP_INLINE inline __attribute__((always_inline))
// The same for lambdas, after their parameters.
#define QUANTMAP_INLINE_LAMBDA __attribute__((always_inline))

// Codecs are the same source for host and device.
#ifdef __CUDACC__
#define QUANTMAP_HD __host__ __device__
#else
#define QUANTMAP_HD
#endif
