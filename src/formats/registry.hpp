// The one table of number formats. Help, the grammar, tests and reports iterate it; a format is added by one
// file and one row here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace quantmap {

enum class FormatKind : std::uint8_t {
  cast,       // stored as is: bf16, fp16 (no scale)
  integer,    // b-bit integers with a scale per granularity
  minifloat,  // fp8, fp6, fp4: a small float with a scale per granularity
  mx,         // OCP microscaling: blocks of 32, E8M0 scale
  nvfp4,      // blocks of 16, E4M3 scales, a tensor scale
  lookup,     // nf4, bnb_fp4: blocks of 64, a table of levels
  ggml,       // GGUF block types
};

// How a value becomes a code and back before it is scaled (element.hpp). `other`: as the kind says (casts,
// GGUF blocks).
enum class Element : std::uint8_t { other, integer, mx_int8, e4m3, e5m2, e2m3, e3m2, e2m1, nf4, bnb_fp4 };

struct Format {
  std::string_view id;  // as written in a SPEC: `int8`, `fp8_e4m3`, `mxfp4`
  FormatKind kind;
  std::int32_t bits;           // of one code
  std::int32_t block;          // values in the format's own block; 0: none
  std::int32_t scale_bits;     // of the format's own block scale(s), for one block; 0: by granularity
  float max;                   // largest code value of the element: 448, 6, 127; 0 where it has no meaning
  std::string_view scale;      // in words, for `formats`
  std::string_view reference;  // specification or implementation followed, and the section of formats.md
  Element element = Element::other;
};

std::span<const Format> formats();
const Format* find_format(std::string_view id);  // null if there is none

}  // namespace quantmap
