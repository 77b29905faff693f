// The fast quantizers: loops over one row in the value domain (a float is rounded to the format's grid and
// stays a float), vectorized by the compiler, equal bit for bit to encode and decode (encoded.hpp). They
// expect finite values except where said; a NaN scale makes its run NaN. x and out may be the same array.
#pragma once

#include <cstdint>

#include "core/simd.hpp"
#include "formats/mx_scale.hpp"
#include "formats/quantize.hpp"
#include "formats/run_scale.hpp"

namespace quantmap {

// Integers and small floats: run k of `run` values (the last may be short) takes runs[k]. `decode`: writes
// code * scale, else the code (integers: less its zero point). Returns the number of values clamped.
struct ScaledRow {
  bool multiply = false;  // x * inverse instead of x / scale
  bool decode = true;
};
std::int64_t round_runs(Element element, const float* x, std::int64_t n, std::int64_t run,
                        const RunScale* runs, ScaledRow how, float* out);

// Scales by column, as arrays: x / scale[i], decoded. The codes' range is looked at for integers only.
std::int64_t round_columns(Element element, const float* x, std::int64_t n, const float* scale,
                           const float* lowest, const float* highest, float* out);

// Casts: any value; finite values that become Inf are counted.
std::int64_t round_bf16(const float* x, std::int64_t n, float* out);
std::int64_t round_fp16(const float* x, std::int64_t n, float* out);

// Blocks along one row, the last filled up with zeros; any value. Counts are added to `counts`.
void round_mx(Element element, const float* x, std::int64_t n, MxScaleRule rule, float* out,
              QuantCounts& counts);

// NVFP4 with the tensor scale g; `decode`: E2M1 * fl(s * g), else E2M1 * s, which BF16 holds exactly.
void round_nvfp4(const float* x, std::int64_t n, float g, bool decode, float* out, QuantCounts& counts);
// The 4/6 choice, squared error, M = 256 (nvfp4.hpp); `decode`: E2M1 * s / S, else E2M1 * s.
void round_nvfp4_4over6(const float* x, std::int64_t n, float amax, bool decode, float* out,
                        QuantCounts& counts);

// Tables of levels, along a flattened tensor, from a block's start. `decoded_absmax`: what each block's level
// is multiplied with; null: the block's own absmax.
void round_lookup(Element element, std::int64_t block, const float* x, std::int64_t n,
                  const float* decoded_absmax, float* out, QuantCounts& counts);
// Absmax of each block, NaN where a value is not finite.
void lookup_absmax(std::int64_t block, const float* x, std::int64_t n, float* absmax);

// The same under the method `mse` (clip.hpp), whatever the values. Blocks of at most 256.
void round_mx_clipped(Element element, const float* x, std::int64_t n, MxScaleRule rule, float* out,
                      QuantCounts& counts);
void round_nvfp4_clipped(const float* x, std::int64_t n, float g, bool decode, float* out,
                         QuantCounts& counts);
void round_lookup_clipped(Element element, std::int64_t block, const float* x, std::int64_t n, float* out,
                          QuantCounts& counts);

// The pointer itself; the compiler then takes each block of a loop over blocks by itself. Else GCC vectorizes
// across blocks, and spends more on shuffling than on rounding.
template <class Value>
QUANTMAP_INLINE Value* one_block(Value* at) {
#ifdef __GNUC__
  asm("" : "+r"(at));
#endif
  return at;
}

// Rounds to BF16; returns how many non-zero values lie outside its normal range.
std::int64_t pack_bf16(const float* x, std::int64_t n, std::uint16_t* out);

}  // namespace quantmap
