// From a registry row's Element to the type with its rules: the one place that lists them.
#pragma once

#include <stdexcept>

#include "formats/bnb_fp4.hpp"
#include "formats/fp4_e2m1.hpp"
#include "formats/fp6_e2m3.hpp"
#include "formats/fp6_e3m2.hpp"
#include "formats/fp8_e4m3.hpp"
#include "formats/fp8_e5m2.hpp"
#include "formats/mx_int8.hpp"
#include "formats/nf4.hpp"
#include "formats/registry.hpp"

namespace quantmap {

// Calls body with the Minifloat that the element is.
template <class Body>
QUANTMAP_INLINE auto with_minifloat(Element element, Body&& body) {
  switch (element) {
    case Element::e4m3:
      return body(Fp8E4M3{});
    case Element::e5m2:
      return body(Fp8E5M2{});
    case Element::e2m3:
      return body(Fp6E2M3{});
    case Element::e3m2:
      return body(Fp6E3M2{});
    case Element::e2m1:
      return body(Fp4E2M1{});
    case Element::mx_int8:
    case Element::integer:
    case Element::nf4:
    case Element::bnb_fp4:
    case Element::other:
      break;
  }
  throw std::logic_error("not a small float");
}
// Calls body with a Minifloat or the MxInt8 that the element is: `with_float(e, [&](auto element) { … })`.
// Inlined, so that vectorized functions may call it.
template <class Body>
QUANTMAP_INLINE auto with_float(Element element, Body&& body) {
  return element == Element::mx_int8 ? body(MxInt8{}) : with_minifloat(element, body);
}

// The same for tables of levels.
template <class Body>
QUANTMAP_INLINE auto with_codebook(Element element, Body&& body) {
  return element == Element::bnb_fp4 ? body(BnbFp4{}) : body(Nf4{});
}

}  // namespace quantmap
