#include "kernels/difference/difference_paths.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define QUANTMAP_X86_PATHS
#endif
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12's own AVX-512 header (its bug 105593)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace quantmap {
namespace {

constexpr int kLanes = kDifferenceLanes;

struct Lanes {
  double error2[kLanes] = {}, reference2[kLanes] = {}, value2[kLanes] = {}, dot[kLanes] = {};
  float max_error = 0, amax = 0;
};

// Values [begin, count), fewer than a step of any path.
void add_last(const float* x, const float* y, std::int64_t begin, std::int64_t count, Lanes& lanes) {
  for (std::int64_t i = begin; i < count; ++i) {
    const double a = x[i], b = y[i], e = b - a;
    const auto lane = static_cast<std::size_t>(i % kLanes);
    lanes.error2[lane] += e * e;
    lanes.reference2[lane] += a * a;
    lanes.value2[lane] += b * b;
    lanes.dot[lane] += a * b;
    lanes.max_error = std::max(lanes.max_error, std::abs(y[i] - x[i]));
    lanes.amax = std::max(lanes.amax, std::abs(x[i]));
  }
}

void sum_lanes(const Lanes& lanes, RowDifference& row) {
  for (int lane = 0; lane < kLanes; ++lane) {
    row.error2 += lanes.error2[lane];
    row.reference2 += lanes.reference2[lane];
    row.value2 += lanes.value2[lane];
    row.dot += lanes.dot[lane];
  }
  row.max_error = lanes.max_error;
  row.amax = lanes.amax;
}

void add_plain(const float* x, const float* y, std::int64_t count, const float*, RowDifference& row) {
  Lanes lanes;
  add_last(x, y, 0, count, lanes);
  sum_lanes(lanes, row);
}

#ifdef QUANTMAP_X86_PATHS

// Bits of magnitudes compare as the floats do, where none is NaN.
constexpr int kMagnitude = 0x7FFFFFFF;

__attribute__((target("avx2,fma"))) void add_avx2(const float* x, const float* y, std::int64_t count,
                                                  const float* next, RowDifference& row) {
  Lanes lanes;
  __m256d error2[2] = {}, reference2[2] = {}, value2[2] = {}, dot[2] = {};
  __m256i most = _mm256_setzero_si256(), most_error = most;
  const __m256i magnitude = _mm256_set1_epi32(kMagnitude);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    if (next) __builtin_prefetch(next + i, 0, 2);
    const __m256 from = _mm256_loadu_ps(x + i), to = _mm256_loadu_ps(y + i);
    most = _mm256_max_epi32(most, _mm256_and_si256(_mm256_castps_si256(from), magnitude));
    const __m256i gap = _mm256_castps_si256(_mm256_sub_ps(to, from));
    most_error = _mm256_max_epi32(most_error, _mm256_and_si256(gap, magnitude));
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4 * half));
      const __m256d b = _mm256_cvtps_pd(_mm_loadu_ps(y + i + 4 * half));
      const __m256d e = _mm256_sub_pd(b, a);
      error2[half] = _mm256_add_pd(error2[half], _mm256_mul_pd(e, e));
      reference2[half] = _mm256_fmadd_pd(a, a, reference2[half]);
      value2[half] = _mm256_fmadd_pd(b, b, value2[half]);
      dot[half] = _mm256_fmadd_pd(a, b, dot[half]);
    }
  }
  for (int half = 0; half < 2; ++half) {
    _mm256_storeu_pd(lanes.error2 + 4 * half, error2[half]);
    _mm256_storeu_pd(lanes.reference2 + 4 * half, reference2[half]);
    _mm256_storeu_pd(lanes.value2 + 4 * half, value2[half]);
    _mm256_storeu_pd(lanes.dot + 4 * half, dot[half]);
  }
  std::int32_t sizes[kLanes], gaps[kLanes];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sizes), most);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(gaps), most_error);
  lanes.amax = std::bit_cast<float>(*std::max_element(sizes, sizes + kLanes));
  lanes.max_error = std::bit_cast<float>(*std::max_element(gaps, gaps + kLanes));
  add_last(x, y, i, count, lanes);
  sum_lanes(lanes, row);
}

__attribute__((target("avx512f"))) void add_avx512(const float* x, const float* y, std::int64_t count,
                                                   const float* next, RowDifference& row) {
  constexpr int kStep = 2 * kLanes;
  Lanes lanes;
  __m512d error2 = _mm512_setzero_pd(), reference2 = error2, value2 = error2, dot = error2;
  __m512i most = _mm512_setzero_si512(), most_error = most;
  const __m512i magnitude = _mm512_set1_epi32(kMagnitude);
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    if (next) __builtin_prefetch(next + i, 0, 2);
    const __m512 from = _mm512_loadu_ps(x + i), to = _mm512_loadu_ps(y + i);
    most = _mm512_max_epi32(most, _mm512_and_si512(_mm512_castps_si512(from), magnitude));
    const __m512i gap = _mm512_castps_si512(_mm512_sub_ps(to, from));
    most_error = _mm512_max_epi32(most_error, _mm512_and_si512(gap, magnitude));
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m512d a = _mm512_cvtps_pd(_mm256_loadu_ps(x + i + kLanes * half));
      const __m512d b = _mm512_cvtps_pd(_mm256_loadu_ps(y + i + kLanes * half));
      const __m512d e = _mm512_sub_pd(b, a);
      error2 = _mm512_add_pd(error2, _mm512_mul_pd(e, e));
      reference2 = _mm512_fmadd_pd(a, a, reference2);
      value2 = _mm512_fmadd_pd(b, b, value2);
      dot = _mm512_fmadd_pd(a, b, dot);
    }
  }
  _mm512_storeu_pd(lanes.error2, error2);
  _mm512_storeu_pd(lanes.reference2, reference2);
  _mm512_storeu_pd(lanes.value2, value2);
  _mm512_storeu_pd(lanes.dot, dot);
  std::int32_t sizes[kStep], gaps[kStep];
  _mm512_storeu_si512(sizes, most);
  _mm512_storeu_si512(gaps, most_error);
  lanes.amax = std::bit_cast<float>(*std::max_element(sizes, sizes + kStep));
  lanes.max_error = std::bit_cast<float>(*std::max_element(gaps, gaps + kStep));
  add_last(x, y, i, count, lanes);
  sum_lanes(lanes, row);
}

#endif

constexpr DifferencePath kPaths[] = {
#ifdef QUANTMAP_X86_PATHS
    {"avx512", [] { return __builtin_cpu_supports("avx512f") != 0; }, add_avx512},
    {"avx2", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }, add_avx2},
#endif
    {"plain", [] { return true; }, add_plain},
};

}  // namespace

std::span<const DifferencePath> difference_paths() { return kPaths; }

}  // namespace quantmap
