#include "formats/spec.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "formats/dynamic_map.hpp"
#include "formats/ggml_encode.hpp"

namespace quantmap {
namespace {

std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

std::string granularity_word(const QuantSpec& spec, Role role) {
  switch (spec.granularity) {
    case Granularity::own:
      return "";
    case Granularity::tensor:
      return "tensor";
    case Granularity::row:
      return role == Role::weight ? "channel" : "token";
    case Granularity::column:
      return role == Role::weight ? "column" : "channel";
    case Granularity::group:
      return fmt::format("g{}", spec.group);
    case Granularity::tile:
      return fmt::format("b{}x{}", spec.tile_rows, spec.tile_cols);
  }
  throw std::logic_error("granularity");
}

std::string_view word(MxScaleRule rule) {
  switch (rule) {
    case MxScaleRule::floor:
      return "floor";
    case MxScaleRule::ceil:
      return "ceil";
    case MxScaleRule::rceil:
      return "rceil";
    case MxScaleRule::even:
      return "even";
  }
  throw std::logic_error("MX scale rule");
}

std::string_view word(ScaleType type) {
  switch (type) {
    case ScaleType::f32:
      return "sf32";
    case ScaleType::f16:
      return "sf16";
    case ScaleType::bf16:
      return "sbf16";
  }
  throw std::logic_error("scale type");
}

std::int64_t scale_bits(ScaleType type) { return type == ScaleType::f32 ? 32 : 16; }

// Scales of a format whose scales follow the granularity.
std::int64_t scale_count(const QuantSpec& spec, std::int64_t rows, std::int64_t cols) {
  switch (spec.granularity) {
    case Granularity::own:
      return 0;
    case Granularity::tensor:
      return spec.source == ScaleSource::unit ? 0 : 1;  // 1.0 is not stored
    case Granularity::row:
      return rows;
    case Granularity::column:
      return cols;
    case Granularity::group:
      return rows * ceil_div(cols, spec.group);
    case Granularity::tile:
      return ceil_div(rows, spec.tile_rows) * ceil_div(cols, spec.tile_cols);
  }
  throw std::logic_error("granularity");
}

}  // namespace

bool QuantSpec::is_reference() const { return format->kind == FormatKind::cast && format->id == "bf16"; }

bool QuantSpec::needs_tensor_range() const {
  if (format->kind == FormatKind::nvfp4) return !no_global;
  return granularity == Granularity::tensor && method != Method::mse && source != ScaleSource::unit;
}

std::string spelling(const QuantSpec& spec, Role role) {
  std::string text(spec.format->id);
  const auto add = [&text](std::string_view suffix) {
    if (!suffix.empty()) (text += ':') += suffix;
  };
  add(granularity_word(spec, role));
  switch (spec.format->kind) {
    case FormatKind::cast:
      break;
    case FormatKind::integer:
      // An asymmetric code's range is 0..2^b-1 always: `full` and `narrow` say nothing there.
      add(spec.asymmetric ? "asym" : spec.range == IntegerRange::full ? "full" : "narrow");
      add(word(spec.scale));
      break;
    case FormatKind::minifloat:
      if (spec.scale != ScaleType::f32) add(word(spec.scale));
      break;
    case FormatKind::mx:
      add(word(spec.rule));
      break;
    case FormatKind::nvfp4:
      if (spec.no_global) add("noglobal");
      if (spec.four_over_six) add("4over6");
      break;
    case FormatKind::lookup:
      if (spec.nested) add("nested");
      break;
    case FormatKind::ggml:
      break;
  }
  if (spec.granularity == Granularity::tensor && spec.source == ScaleSource::dynamic) add("dynamic");
  if (spec.method == Method::mse) add("mse");
  return text;
}

std::int64_t storage_bits(const QuantSpec& spec, std::int64_t rows, std::int64_t cols) {
  const Format& format = *spec.format;
  const std::int64_t values = rows * cols;
  switch (format.kind) {
    case FormatKind::cast:
      return values * format.bits;
    case FormatKind::integer:
    case FormatKind::minifloat: {
      const std::int64_t scale = scale_bits(spec.scale) + (spec.asymmetric ? format.bits : 0);
      return values * format.bits + scale_count(spec, rows, cols) * scale;
    }
    case FormatKind::mx:
    case FormatKind::nvfp4: {  // the last block of a row is filled up
      const std::int64_t blocks = rows * ceil_div(cols, format.block);
      const std::int64_t tensor = format.kind == FormatKind::nvfp4 && !spec.no_global ? 32 : 0;
      return blocks * (format.block * format.bits + format.scale_bits) + tensor;
    }
    case FormatKind::lookup: {  // blocks run over the flattened tensor; nested: 8-bit maxima, their mean in
                                // FP32
      const std::int64_t blocks = ceil_div(values, format.block);
      const std::int64_t maxima =
          spec.nested ? blocks * 8 + ceil_div(blocks, kNestedBlock) * 32 + 32 : blocks * format.scale_bits;
      return values * format.bits + maxima;
    }
    case FormatKind::ggml: {  // whole blocks, of the type that rows of this length are kept in
      const GgmlType& type = ggml_stored_type(format, cols);
      return rows * (cols / type.block) * type.bytes * 8;
    }
  }
  throw std::logic_error("format kind");
}

}  // namespace quantmap
