// Specs and matrices that the laws of quantizers are tried on.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "formats/quantize.hpp"

namespace quantmap::testing {

struct NamedSpec {
  std::string name;
  QuantSpec spec;
};

inline QuantSpec spec_of(const char* id, Granularity granularity = Granularity::own, std::int32_t group = 0) {
  QuantSpec spec;
  spec.format = find_format(id);
  spec.granularity = granularity;
  spec.group = group;
  return spec;
}

// Every format that has a quantizer with every granularity and every option that changes a bit, spelled by
// spelling() where that tells them apart.
inline std::vector<NamedSpec> all_specs() {
  std::vector<NamedSpec> specs;
  const auto add = [&specs](QuantSpec spec, const std::string& note = "") {
    specs.push_back({spelling(spec, Role::weight) + note, spec});
  };
  add(spec_of("bf16"));
  add(spec_of("fp16"));
  for (const Format& format : formats()) {
    const bool integer = format.kind == FormatKind::integer;
    if (!integer && format.kind != FormatKind::minifloat) continue;
    const std::string id(format.id);
    for (const Granularity granularity : {Granularity::tensor, Granularity::row, Granularity::column,
                                          Granularity::group, Granularity::tile}) {
      for (const std::int32_t group : granularity == Granularity::group
                                          ? std::vector<std::int32_t>{1, 10, 32, 128}
                                          : std::vector<std::int32_t>{0}) {
        QuantSpec spec = spec_of(id.c_str(), granularity, group);
        if (granularity == Granularity::tile) spec.tile_rows = 4, spec.tile_cols = 12;
        for (const ScaleType scale : {ScaleType::f32, ScaleType::f16, ScaleType::bf16}) {
          spec.scale = scale;
          spec.range = IntegerRange::full;
          spec.asymmetric = false;
          add(spec);
          if (!integer) continue;
          spec.range = IntegerRange::narrow;
          add(spec);
          spec.asymmetric = true;
          add(spec);
        }
      }
    }
    QuantSpec per_head = spec_of(id.c_str(), Granularity::row);
    per_head.per_head = true;
    per_head.range = IntegerRange::narrow;
    add(per_head, " per head");
    per_head.scale = ScaleType::f16;
    add(per_head, " per head");
    QuantSpec unit = spec_of(id.c_str(), Granularity::tensor);
    unit.source = ScaleSource::unit;
    if (!integer) add(unit, " scale 1");
  }
  for (const Format& format : formats()) {
    if (format.kind != FormatKind::mx) continue;
    for (const MxScaleRule rule :
         {MxScaleRule::floor, MxScaleRule::ceil, MxScaleRule::rceil, MxScaleRule::even}) {
      if (format.element == Element::mx_int8 && rule != MxScaleRule::floor) continue;
      QuantSpec spec = spec_of(std::string(format.id).c_str());
      spec.rule = rule;
      add(spec);
    }
  }
  for (const bool no_global : {false, true}) {
    for (const bool four_over_six : {false, true}) {
      QuantSpec spec = spec_of("nvfp4");
      spec.no_global = no_global;
      spec.four_over_six = four_over_six;
      add(spec);
    }
  }
  for (const char* id : {"nf4", "bnb_fp4"}) {
    for (const bool nested : {false, true}) {
      QuantSpec spec = spec_of(id);
      spec.nested = nested;
      add(spec);
    }
  }
  // Eighty trials for each scale: a few of each kind.
  for (const char* id :
       {"int4", "int2", "fp8_e4m3", "fp4_e2m1", "mxfp4", "mxint8", "nvfp4", "nf4", "bnb_fp4"}) {
    QuantSpec spec = spec_of(id);
    spec.method = Method::mse;
    if (spec.format->kind != FormatKind::integer && spec.format->kind != FormatKind::minifloat) {
      add(spec);
      continue;
    }
    for (const Granularity granularity :
         {Granularity::tensor, Granularity::row, Granularity::group, Granularity::tile}) {
      spec.granularity = granularity;
      spec.group = granularity == Granularity::group ? 32 : 0;
      spec.tile_rows = granularity == Granularity::tile ? 4 : 0;
      spec.tile_cols = granularity == Granularity::tile ? 12 : 0;
      spec.asymmetric = spec.format->bits == 2;
      spec.scale = spec.asymmetric ? ScaleType::bf16 : ScaleType::f32;
      spec.range = spec.asymmetric ? IntegerRange::narrow : IntegerRange::full;
      add(spec);
    }
  }
  for (const Format& format : formats()) {
    if (format.kind == FormatKind::ggml) add(spec_of(format.id.data()));
  }
  return specs;
}

struct Shape {
  std::int64_t rows, cols;
};
// Row lengths around every block (16, 32, 64, 256), group (10, 32, 128), tile and vector width, and not.
inline constexpr Shape kShapes[] = {{1, 1},  {1, 7},  {3, 15},  {2, 17},  {5, 31},   {5, 33}, {2, 64},
                                    {9, 65}, {4, 12}, {7, 130}, {3, 257}, {1, 1100}, {3, 768}};

struct NamedSample {
  const char* name;
  float (*value)(SplitMix64& random, std::int64_t index);
};

inline float any_finite(SplitMix64& random) {
  for (;;) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random.next() >> 32));
    if (std::isfinite(value)) return value;
  }
}
inline float normal(SplitMix64& random) {
  const double radius = std::sqrt(-2 * std::log(random.uniform()));
  return static_cast<float>(radius * std::cos(6.283185307179586 * random.uniform()));
}

inline constexpr NamedSample kFiniteSamples[] = {
    {"gaussian", [](SplitMix64& r, std::int64_t) { return normal(r); }},
    {"weights", [](SplitMix64& r, std::int64_t) { return 0.02F * normal(r); }},
    // Quotients land on midpoints of many grids.
    {"ties", [](SplitMix64& r,
                std::int64_t) { return static_cast<float>(static_cast<int>(r.next() % 513) - 256) / 16; }},
    // Groups and rows of zeros, of either sign, among others.
    {"zeros",
     [](SplitMix64& r, std::int64_t i) { return i / 40 % 2 == 0 ? (i % 3 ? 0.0F : -0.0F) : normal(r); }},
    {"one-sided", [](SplitMix64& r, std::int64_t) { return -9 - static_cast<float>(r.uniform()); }},
    {"constant", [](SplitMix64&, std::int64_t) { return 0.3F; }},
    {"outlier", [](SplitMix64& r, std::int64_t i) { return i % 97 == 5 ? 19000.0F : normal(r); }},
    // Scales underflow as FP16 and as E4M3.
    {"tiny", [](SplitMix64& r, std::int64_t i) { return (i / 50 % 2 ? 1e-9F : 1e-4F) * normal(r); }},
    {"subnormal", [](SplitMix64& r, std::int64_t) { return std::ldexp(normal(r), -140); }},
    {"huge", [](SplitMix64& r, std::int64_t) { return std::ldexp(normal(r), 120); }},
    {"any finite", [](SplitMix64& r, std::int64_t) { return any_finite(r); }},
};
inline constexpr NamedSample kSpecialSamples[] = {
    {"one nan", [](SplitMix64& r, std::int64_t i) { return i == 3 ? std::nanf("") : normal(r); }},
    {"some inf",
     [](SplitMix64& r, std::int64_t i) {
       const float inf = std::numeric_limits<float>::infinity();
       return i % 60 == 9 ? (i % 120 == 9 ? inf : -inf) : normal(r);
     }},
    {"only nan", [](SplitMix64&, std::int64_t) { return -std::nanf(""); }},
};

inline std::vector<float> sample(const NamedSample& kind, const Shape& shape, std::uint64_t seed = 7) {
  SplitMix64 random(seed);
  std::vector<float> x(static_cast<std::size_t>(shape.rows * shape.cols));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = kind.value(random, static_cast<std::int64_t>(i));
  return x;
}

}  // namespace quantmap::testing
